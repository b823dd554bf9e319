import { type TSchema, Type } from 'typebox';
import { component } from '../platform/protocol/components.ts';

const Step = Type.Object({
  urn: Type.String(),
  type: Type.String(),
  operation: Type.String({ description: 'Such as `create`, `update` or `delete`' }),
  startSeconds: Type.Number({ description: 'Since the start of the first step' }),
  seconds: Type.Number(),
});
const Counts = Type.Object({
  creates: Type.Integer(),
  updates: Type.Integer(),
  replaces: Type.Integer(),
  deletes: Type.Integer(),
});
const Range = Type.Array(Type.Number(), { minItems: 2, maxItems: 2, description: 'Contains four fifths of them' });
const Nullable = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

export const UpdateStatisticsResponse = component(
  'UpdateStatisticsResponse',
  Type.Object({
    updateID: Type.String(),
    kind: Type.String(),
    isPreview: Type.Boolean(),
    result: Type.String({ description: '`not started`, `running`, `succeeded`, `failed` or `cancelled`' }),
    waitedSeconds: Nullable(
      Type.Number({ description: 'For the stack, before it was created; null: it did not wait' }),
    ),
    seconds: Nullable(Type.Number({ description: 'From its start to its end, or until now' })),
    changes: Counts,
    isComplete: Type.Boolean({
      description: 'Whether `steps` and `failedBefore` are known: some minutes after the end',
    }),
    failedBefore: Nullable(Type.Integer({ description: 'Runs of the same commit that failed before it' })),
    steps: Nullable(
      Type.Object({
        count: Type.Integer(),
        failed: Type.Integer(),
        slowest: Type.Array(Step),
        criticalPath: Nullable(Type.Object({ seconds: Type.Number(), steps: Type.Array(Step) })),
        retries: Nullable(
          Type.Object(
            {
              repeats: Type.Integer({ description: 'Steps that were started again' }),
              messages: Type.Integer({ description: 'Messages of providers that mention another attempt' }),
              resources: Type.Array(
                Type.Object({ urn: Type.String(), repeats: Type.Integer(), messages: Type.Integer() }),
                { description: 'The resources with the most' },
              ),
            },
            { description: 'As reported by events; null: not known' },
          ),
        ),
      }),
    ),
    usual: Nullable(
      Type.Object({
        count: Type.Integer({ description: 'Updates of this kind that succeeded in the last 90 days' }),
        seconds: Range,
        waitedSeconds: Range,
        creates: Range,
        updates: Range,
        replaces: Range,
        deletes: Range,
        medians: Type.Object({
          seconds: Type.Number(),
          waitedSeconds: Type.Number(),
          ...Counts.properties,
        }),
      }),
    ),
    unusual: Type.Array(Type.Object({ name: Type.String(), value: Type.Number(), range: Range }), {
      description: 'Values above the range of earlier updates, if there are at least five',
    }),
  }),
);
