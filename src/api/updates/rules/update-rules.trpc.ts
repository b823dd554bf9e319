import { Type } from 'typebox';
import { parseRule } from '../../../shared/updates/rules/update-rules.ts';
import { decodeCursor, encodeCursor, input, Name, page, Revision, text } from '../../access/procedures/inputs.ts';
import { organizationMutation, organizationProcedure, router } from '../../access/procedures/trpc.ts';
import { seenByField } from '../../platform/edits/revisions.ts';
import { type RuleQueries, ruleView } from './rule-queries.ts';
import type { UpdateRuleService } from './update-rule-service.ts';

declare module '../../access/procedures/context.ts' {
  interface ProcedureServices {
    readonly ruleQueries: RuleQueries;
    readonly updateRules: UpdateRuleService;
  }
}

const CursorFields = Type.Tuple([
  text(100),
  text(200),
  text(200),
  text(1_000),
  text(1_000),
  Type.String({ pattern: '^\\d{1,17}$' }),
  Type.String({ format: 'uuid' }),
]);
/** The limit is low, because future windows are computed for each freeze. */
const maxPage = 50;

const Rule = {
  kind: text(100),
  project: Type.Optional(Type.Union([Name, Type.Null()])),
  stack: Type.Optional(Type.Union([Name, Type.Null()])),
  tag: Type.Optional(Type.Union([Type.Object({ name: text(200), value: text(1_000) }), Type.Null()])),
  settings: Type.Object({}, { additionalProperties: true }),
  note: Type.Optional(text(2_000)),
};

export const rulesRouter = router({
  /** By kind and scope. A freeze shows whether it is in force, and its next windows. */
  list: organizationProcedure('manage')
    .input(input(Type.Object({ kinds: Type.Optional(Type.Array(text(100), { minItems: 1, maxItems: 20 })), ...page })))
    .query(async ({ ctx: { services }, input: { cursor, kinds = null, limit = maxPage, organization } }) => {
      const { items, next } = await services.ruleQueries.list(organization, {
        kinds,
        after: decodeCursor(cursor, CursorFields),
        limit: Math.min(limit, maxPage),
      });
      return { items, next: next && encodeCursor(next) };
    }),

  get: organizationProcedure('manage')
    .input(input(Type.Object({ ruleId: text(100) })))
    .query(async ({ ctx: { services }, input: { organization, ruleId } }) =>
      ruleView(await services.updateRules.get(organization, ruleId), organization),
    ),

  /** An invalid rule is rejected as by `set`. */
  preview: organizationProcedure('manage')
    .input(input(Type.Object(Rule)))
    .query(({ ctx: { caller, services }, input: { organization, ...rule } }) =>
      services.ruleQueries.preview(caller, organization, parseRule(rule)),
    ),

  /** `ruleId`: the rule that this rule replaces. */
  estimate: organizationProcedure('manage')
    .input(input(Type.Object({ ruleId: Type.Optional(text(100)), ...Rule })))
    .query(({ ctx: { caller, services }, input: { organization, ruleId = null, ...rule } }) =>
      services.ruleQueries.estimate(caller, organization, parseRule(rule), ruleId),
    ),

  /** A freeze is added to the existing freezes. */
  set: organizationMutation('manage', 'update-rule.set')
    .input(input(Type.Object(Rule)))
    .mutation(async ({ ctx: { audit, caller, services }, input: { organization, ...rule } }) =>
      ruleView(await services.updateRules.set(caller, organization, parseRule(rule), audit), organization),
    ),

  /** The kind of the rule stays. */
  change: organizationMutation('manage', 'update-rule.set')
    .input(input(Type.Object({ ruleId: text(100), revision: Revision, ...Rule })))
    .mutation(async ({ ctx: { audit, caller, services }, input: { organization, revision, ruleId, ...rule } }) => {
      const seen = seenByField(revision);
      const changed = await services.updateRules.change(caller, organization, ruleId, parseRule(rule), audit, seen);
      return ruleView(changed, organization);
    }),

  remove: organizationMutation('manage', 'update-rule.remove')
    .input(input(Type.Object({ ruleId: text(100), revision: Revision })))
    .mutation(async ({ ctx: { audit, caller, services }, input: { organization, revision, ruleId } }) => {
      await services.updateRules.remove(caller, organization, ruleId, audit, seenByField(revision));
    }),
});
