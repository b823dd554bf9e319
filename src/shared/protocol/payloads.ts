import { Type } from 'typebox';
import { AnyObject, Maybe } from './core.ts';

/** Texts whose exact bytes count: the server scans them, so these schemas are for the API's description alone. */

const SequenceNumber = Type.Integer({
  minimum: 0,
  maximum: 2 ** 31 - 1,
  description: 'Rises by one with each accepted write of the update; a repeated or lower one changes nothing',
});
const DeploymentVersion = Type.Integer({ minimum: 1, maximum: 4, description: 'Schema version of the deployment' });

/** apitype.UntypedDeployment: `deployment` is not modelled, its bytes are kept. */
export const UntypedDeployment = Type.Object({
  version: DeploymentVersion,
  features: Maybe(Type.Array(Type.String())),
  deployment: AnyObject,
});

/** apitype.PatchUpdateCheckpointRequest. */
export const CheckpointRequest = Type.Object({
  version: DeploymentVersion,
  features: Maybe(Type.Array(Type.String())),
  deployment: AnyObject,
  isInvalid: Type.Optional(Type.Boolean()),
});

/** apitype.PatchUpdateVerbatimCheckpointRequest. */
export const VerbatimCheckpointRequest = Type.Object({
  version: Type.Integer(),
  untypedDeployment: UntypedDeployment,
  sequenceNumber: SequenceNumber,
});

const Point = Type.Object({ offset: Type.Integer({ minimum: 0, description: 'In bytes of UTF-8' }) });

/** apitype.PatchUpdateCheckpointDeltaRequest. */
export const CheckpointDeltaRequest = Type.Object({
  version: Type.Integer({ minimum: 0 }),
  checkpointHash: Type.String({ pattern: '^[0-9a-f]{64}$', description: 'SHA-256 of the text with the edits applied' }),
  sequenceNumber: SequenceNumber,
  deploymentDelta: Type.Array(
    Type.Object({ Span: Type.Object({ start: Point, end: Point }), NewText: Type.String() }),
    { description: 'In ascending order; no two overlap' },
  ),
});

/** apitype.JournalEntries. */
export const JournalEntriesRequest = Type.Object({
  entries: Type.Array(
    Type.Object(
      {
        version: Type.Optional(Type.Integer()),
        kind: Type.Integer({
          minimum: 0,
          maximum: 999_999_999,
          description: 'One that this server does not know is kept',
        }),
        sequenceID: Type.Integer({ minimum: 1 }),
        operationID: Type.Optional(Type.Integer()),
      },
      { additionalProperties: true },
    ),
  ),
});

/** apitype.EngineEventBatch: besides these an event has one payload, named after its type. */
export const EventBatchRequest = Type.Object({
  events: Type.Array(
    Type.Object(
      { sequence: Type.Integer({ minimum: 0 }), timestamp: Type.Optional(Type.Integer()) },
      { additionalProperties: true },
    ),
  ),
});

/** A page of an update's events; null at its very end. */
export const EventsResponse = Type.Object({
  events: Type.Array(AnyObject),
  continuationToken: Type.Union([Type.String(), Type.Null()]),
});
