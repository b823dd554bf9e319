import { Type } from 'typebox';
import { component } from '../platform/protocol/components.ts';

const maxDays = 90;

export const DeliveryQuery = Type.Object({
  days: Type.Optional(Type.Integer({ minimum: 1, maximum: maxDays, description: 'Up to today (UTC); default 30' })),
});

const times = (description: string) =>
  Type.Union(
    [Type.Object({ count: Type.Integer(), medianSeconds: Type.Integer(), p90Seconds: Type.Integer() }), Type.Null()],
    { description },
  );

const delivery = {
  finished: Type.Integer({ description: 'Updates, refreshes and destroys that succeeded or failed' }),
  failed: Type.Integer(),
  changed: Type.Integer({ description: 'Updates and destroys that succeeded and changed resources' }),
  changesPerDay: Type.Number({ description: 'Change rate: `changed`, divided by the days' }),
  failureRate: Type.Union([Type.Number(), Type.Null()], { description: '`failed`, divided by `finished`' }),
  leadTime: times(
    'From the first run of a commit in the organization, previews included, to the end of the first update of a stack that succeeded with it, if it changed resources. Rounded from 5 minutes on. Null: there was none',
  ),
  timeToRestore: times(
    'From the end of a stack’s first failed run to the end of its next successful one. Rounded from 5 minutes on. Null: there was none',
  ),
};

const example = {
  ...{ finished: 40, failed: 2, changed: 30, changesPerDay: 1, failureRate: 0.05 },
  leadTime: { count: 28, medianSeconds: 5_400, p90Seconds: 86_400 },
  timeToRestore: { count: 2, medianSeconds: 900, p90Seconds: 3_600 },
};

export const DeliveryResponse = component(
  'DeliveryResponse',
  Type.Object({
    days: Type.Integer(),
    total: Type.Object(delivery),
    projects: Type.Array(Type.Object({ project: Type.String(), ...delivery }), {
      description: 'With finished runs, by name',
    }),
    isTrimmed: Type.Boolean({ description: 'There may be stacks that the caller may not read' }),
  }),
  { days: 30, total: example, projects: [{ project: 'website', ...example }], isTrimmed: false },
);
