import { type Static, Type } from 'typebox';
import { component } from '../../platform/protocol/components.ts';
import { AnyObject, IsoTimestamp, Maybe } from '../../platform/protocol/core.ts';

const Tag = Type.Object({ name: Type.String(), value: Type.String() });

/** The stacks of a rule must match all given properties. */
const Scope = {
  project: Maybe(Type.String()),
  stack: Maybe(Type.String({ description: 'Only with its project, and without a tag' })),
  tag: Maybe(Tag),
};

export const SetUpdateRuleRequest = component(
  'SetUpdateRuleRequest',
  Type.Object({
    kind: Type.String(),
    ...Scope,
    settings: AnyObject,
    note: Maybe(Type.String()),
  }),
  { kind: 'lock-wait', project: 'website', settings: { seconds: 600 } },
);
export type SetUpdateRuleRequest = Static<typeof SetUpdateRuleRequest>;

export const UpdateRuleResponse = component(
  'UpdateRuleResponse',
  Type.Object({
    id: Type.String(),
    kind: Type.String(),
    project: Type.Optional(Type.String()),
    stack: Type.Optional(Type.String()),
    tag: Type.Optional(Tag),
    settings: AnyObject,
    note: Type.String(),
    setAt: IsoTimestamp,
    setBy: Type.Optional(Type.String({ description: 'Login; an operator has none' })),
  }),
);

export const EstimateUpdateRuleQuery = Type.Object({
  kind: Type.String(),
  settings: Type.String({ description: 'As JSON' }),
  project: Type.Optional(Type.String()),
  stack: Type.Optional(Type.String()),
  tagName: Type.Optional(Type.String()),
  tagValue: Type.Optional(Type.String()),
});
export type EstimateUpdateRuleQuery = Static<typeof EstimateUpdateRuleQuery>;

export const EstimateUpdateRuleResponse = component(
  'EstimateUpdateRuleResponse',
  Type.Object({
    kind: Type.String(),
    count: Type.Integer({ description: 'Versions, updates with events, or previews' }),
    bytes: Type.Integer(),
    stackCount: Type.Integer({ description: 'Stacks for which the rule would decide' }),
    heldCount: Type.Integer({ description: 'Of these, stacks under a legal hold' }),
    otherCount: Type.Integer({ description: 'Stacks for which a more specific rule decides' }),
    stacks: Type.Array(
      Type.Object({ project: Type.String(), stack: Type.String(), count: Type.Integer(), bytes: Type.Integer() }),
    ),
    isComplete: Type.Boolean({ description: 'False if there was no time for all stacks' }),
  }),
);

export const ListUpdateRulesResponse = component(
  'ListUpdateRulesResponse',
  Type.Object({ rules: Type.Array(UpdateRuleResponse) }),
);
export const UpdateRuleParams = Type.Object({ organization: Type.String(), ruleId: Type.String() });
