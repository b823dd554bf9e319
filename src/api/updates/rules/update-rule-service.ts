import type { Queryable } from '../../../shared/platform/db/sql.ts';
import { violatedConstraint } from '../../../shared/platform/db/sqlstate.ts';
import { ConflictError, InvalidRequestError, NotFoundError } from '../../../shared/platform/errors/errors.ts';
import { isUuid } from '../../../shared/platform/schema/uuid.ts';
import type { StackRef } from '../../../shared/stacks/names.ts';
import { slotOf } from '../../../shared/updates/rules/rule-kinds.ts';
import { assertRuleCount, setRule } from '../../../shared/updates/rules/set-rule.ts';
import { createUpdateRuleRepository, type RuleRow } from '../../../shared/updates/rules/update-rule-repository.ts';
import { describeScope, type NewRule, scopeOf } from '../../../shared/updates/rules/update-rules.ts';
import { lockManagement } from '../../access/locked-access.ts';
import { getOrganization } from '../../access/organizations.ts';
import { changePeople } from '../../access/people-lock.ts';
import type { ApiContext } from '../../platform/api-context.ts';
import type { AuditTrail } from '../../platform/audit-trail/audit-trail.ts';
import { assertSeen, revisionOf, type SeenRevisions } from '../../platform/edits/revisions.ts';
import type { Caller } from '../../platform/http/request.ts';
import { warnOfConsumers } from './consumers.ts';

export type { RuleRow };

export class UpdateRuleService {
  readonly #db: ApiContext['db'];

  constructor({ db }: Pick<ApiContext, 'db'>) {
    this.#db = db;
  }

  async list(organization: string): Promise<readonly RuleRow[]> {
    return createUpdateRuleRepository(this.#db).list((await getOrganization(this.#db, organization)).id);
  }

  /** Warns, before a destroy or its preview, of stacks that read the outputs. */
  async warnOfDestroy(ref: StackRef, caller: Caller, until: number): Promise<string[]> {
    const warning = await warnOfConsumers(this.#db, ref, caller, 'destroy', until);
    return warning === null ? [] : [warning];
  }

  async get(organization: string, id: string): Promise<RuleRow> {
    return getRule(this.#db, (await getOrganization(this.#db, organization)).id, id);
  }

  /**
   * Replaces the rule of its kind for the same stacks, except for kinds of which each rule counts. After the response, no update is created
   * without regard to the rule.
   */
  async set(caller: Caller, organization: string, rule: NewRule, audit: AuditTrail): Promise<RuleRow> {
    return changePeople(this.#db, organization, async (tx) => {
      const organizationId = await this.#lock(tx, caller, organization);
      const { id, isRepeated } = await setRule(tx, organizationId, rule, caller.userId);
      if (isRepeated) {
        audit.settle();
        return getRule(tx, organizationId, id);
      }
      const object = describeScope(rule, organization);
      const { kind, note, settings } = rule;
      await audit.record(tx, { organization, object, details: { id, kind, settings, note } });
      return getRule(tx, organizationId, id);
    });
  }

  /** The kind stays. A rule is in force at every moment. Throws ConflictError if another rule of its kind is already for these stacks. */
  async change(
    caller: Caller,
    organization: string,
    id: string,
    rule: NewRule,
    audit: AuditTrail,
    seen: SeenRevisions = null,
  ): Promise<RuleRow> {
    try {
      return await changePeople(this.#db, organization, async (tx) => {
        const organizationId = await this.#lock(tx, caller, organization);
        const before = await getRule(tx, organizationId, id);
        await assertSeenRule(before, seen);
        const { kind, note, settings } = rule;
        if (before.kind !== kind)
          throw new InvalidRequestError(`The rule is of kind ${before.kind}, which cannot be changed`);
        const slot = slotOf(kind, settings);
        await createUpdateRuleRepository(tx).change(id, { ...rule, slot }, caller.userId);
        await assertRuleCount(tx, organizationId);
        const from = {
          scope: describeScope(scopeOf(before), organization),
          settings: JSON.parse(before.settings) as unknown,
          note: before.note,
        };
        const details = { id, kind, settings, note, from };
        await audit.record(tx, { organization, object: describeScope(rule, organization), details });
        return getRule(tx, organizationId, id);
      });
    } catch (error) {
      if (violatedConstraint(error) !== 'update_rules_key') throw error;
      throw new ConflictError(
        `There is another rule ${rule.kind} for ${describeScope(rule, organization)}: change or delete it`,
      );
    }
  }

  async remove(
    caller: Caller,
    organization: string,
    id: string,
    audit: AuditTrail,
    seen: SeenRevisions = null,
  ): Promise<void> {
    await changePeople(this.#db, organization, async (tx) => {
      const organizationId = await this.#lock(tx, caller, organization);
      const rule = await getRule(tx, organizationId, id);
      await assertSeenRule(rule, seen);
      await createUpdateRuleRepository(tx).remove(organizationId, id);
      const object = describeScope(scopeOf(rule), organization);
      const { kind, note } = rule;
      const settings = JSON.parse(rule.settings) as unknown;
      await audit.record(tx, { organization, object, details: { id, kind, settings, note } });
    });
  }

  /** Call within `changePeople`. Holds the caller's rights, and keeps other changes and new updates waiting. */
  async #lock(tx: Queryable, caller: Caller, organization: string): Promise<string> {
    await lockManagement(tx, organization, caller);
    const { id: organizationId } = await getOrganization(tx, organization);
    await createUpdateRuleRepository(tx).lockForChange(organizationId);
    return organizationId;
  }
}

/** The revision covers the columns that `change` sets. */
export function revisionOfRule({ note, project, settings, stack, tagName, tagValue }: RuleRow): string {
  return revisionOf({ note, project, settings, stack, tagName, tagValue });
}

function assertSeenRule(rule: RuleRow, seen: SeenRevisions): Promise<void> {
  return assertSeen(seen, revisionOfRule(rule), 'this rule', () => ({ by: rule.setBy, at: rule.setAt }));
}

async function getRule(db: Queryable, organizationId: string, id: string): Promise<RuleRow> {
  const rule = isUuid(id) ? await createUpdateRuleRepository(db).find(organizationId, id) : null;
  if (!rule) throw new NotFoundError(`There is no rule ${JSON.stringify(id.slice(0, 60))}`);
  return rule;
}
