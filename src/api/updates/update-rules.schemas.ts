import { type Static, Type } from 'typebox';
import { AnyObject, IsoTimestamp, Maybe } from '../platform/protocol/core.ts';

const Tag = Type.Object({ name: Type.String(), value: Type.String() });

/** The stacks of a rule: all given properties must match. */
const Scope = {
  project: Maybe(Type.String()),
  stack: Maybe(Type.String({ description: 'Only with its project, and without a tag' })),
  tag: Maybe(Tag),
};

export const SetUpdateRuleRequest = Type.Object({
  kind: Type.String(),
  ...Scope,
  settings: AnyObject,
  note: Maybe(Type.String()),
});
export type SetUpdateRuleRequest = Static<typeof SetUpdateRuleRequest>;

export const UpdateRuleResponse = Type.Object({
  id: Type.String(),
  kind: Type.String(),
  project: Type.Optional(Type.String()),
  stack: Type.Optional(Type.String()),
  tag: Type.Optional(Tag),
  settings: AnyObject,
  note: Type.String(),
  setAt: IsoTimestamp,
  setBy: Type.Optional(Type.String({ description: 'Login; an operator has none' })),
});

export const ListUpdateRulesResponse = Type.Object({ rules: Type.Array(UpdateRuleResponse) });
export const UpdateRuleParams = Type.Object({ organization: Type.String(), ruleId: Type.String() });
