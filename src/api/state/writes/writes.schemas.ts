import { Type } from 'typebox';
import { component } from '../../platform/protocol/components.ts';
import { AnyObject, Maybe } from '../../platform/protocol/core.ts';

/** The exact bytes of these bodies matter. The server scans them, so the schemas serve only the API description. */

const SequenceNumber = Type.Integer({
  minimum: 0,
  maximum: 2 ** 31 - 1,
  description: 'Increases by one with each accepted write of the update; a repeated or lower number has no effect',
});
const DeploymentVersion = Type.Integer({ minimum: 1, maximum: 4, description: 'Schema version of the deployment' });

/** apitype.UntypedDeployment. The bytes of `deployment` are stored unchanged. */
export const UntypedDeployment = component(
  'UntypedDeployment',
  Type.Object({
    version: DeploymentVersion,
    features: Maybe(Type.Array(Type.String())),
    deployment: AnyObject,
  }),
);

/** apitype.PatchUpdateCheckpointRequest. */
export const CheckpointRequest = component(
  'CheckpointRequest',
  Type.Object({
    version: DeploymentVersion,
    features: Maybe(Type.Array(Type.String())),
    deployment: AnyObject,
    isInvalid: Type.Optional(Type.Boolean()),
  }),
);

/** apitype.PatchUpdateVerbatimCheckpointRequest. */
export const VerbatimCheckpointRequest = component(
  'VerbatimCheckpointRequest',
  Type.Object({
    version: Type.Integer(),
    untypedDeployment: UntypedDeployment,
    sequenceNumber: SequenceNumber,
  }),
);

const Point = Type.Object({ offset: Type.Integer({ minimum: 0, description: 'In bytes of UTF-8' }) });

/** apitype.PatchUpdateCheckpointDeltaRequest. */
export const CheckpointDeltaRequest = component(
  'CheckpointDeltaRequest',
  Type.Object({
    version: Type.Integer({ minimum: 0 }),
    checkpointHash: Type.String({ pattern: '^[0-9a-f]{64}$', description: 'SHA-256 of the text after the edits' }),
    sequenceNumber: SequenceNumber,
    deploymentDelta: Type.Array(
      Type.Object({ Span: Type.Object({ start: Point, end: Point }), NewText: Type.String() }),
      { description: 'In ascending order, without overlaps' },
    ),
  }),
);

/** apitype.JournalEntries. */
export const JournalEntriesRequest = component(
  'JournalEntriesRequest',
  Type.Object({
    entries: Type.Array(
      Type.Object(
        {
          version: Type.Optional(Type.Integer()),
          kind: Type.Integer({
            minimum: 0,
            maximum: 999_999_999,
            description: 'Kinds unknown to this server are stored',
          }),
          sequenceID: Type.Integer({ minimum: 1 }),
          operationID: Type.Optional(Type.Integer()),
        },
        { additionalProperties: true },
      ),
    ),
  }),
);
