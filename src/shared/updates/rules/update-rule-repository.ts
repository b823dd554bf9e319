import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../../platform/db/sql.ts';
import { Nullable, Timestamp } from '../../platform/schema/standard-schema.ts';
import type { StackRef } from '../../stacks/names.ts';
import { lockedWherever, StackRow, stackColumns, stackJoins, stackNamed } from '../../stacks/stack-repository.ts';
import { type NewRule, type RuleScope, UpdateRules } from './update-rules.ts';

const Text = Nullable(Type.String());

const RuleRow = Type.Object({
  id: Type.String(),
  kind: Type.String(),
  project: Text,
  stack: Text,
  tagName: Text,
  tagValue: Text,
  /** JSON text. */
  settings: Type.String(),
  note: Type.String(),
  setAt: Timestamp,
  /** Null for an operator, or a deleted user. */
  setBy: Text,
});
export type RuleRow = Row<typeof RuleRow>;

const PagedRow = Type.Object({
  ...RuleRow.properties,
  /** Microseconds since the epoch, as text. */
  setMicros: Type.String(),
  now: Timestamp,
  /** Whether a configuration declares the rule. */
  isManaged: Type.Boolean(),
});
export type PagedRuleRow = Row<typeof PagedRow>;

/** Kind, project, stack, name and value of the tag, microseconds since the epoch, id. */
export type RulePosition = readonly [string, string, string, string, string, string, string];

const MatchedRow = Type.Object({ project: Type.String(), stack: Type.String() });

const StackWithRulesRow = Type.Object({ ...StackRow.properties, rules: Text });
const RulesRow = Type.Object({ rules: Text });
const FreezeRow = Type.Object({ id: Type.String(), settings: Type.String(), now: Timestamp });
const IdRow = Type.Object({ id: Type.String() });
const NameRow = Type.Object({ name: Type.String() });
const SizeRow = Type.Object({ count: Type.Integer(), windows: Type.Integer(), bytes: Type.Integer() });

export type StackWithRules = StackRow & { readonly updateRules: UpdateRules };

/**
 * For the stack `s` of project `p` and organization `o`; UpdateRules.read parses it. Null if there are none, which takes one index search.
 */
const applicableRules = rulesFor({
  organizationId: sql.fragment`o.id`,
  project: sql.fragment`p.name`,
  stack: sql.fragment`s.name`,
  tags: sql.fragment`s.tags::jsonb`,
});

type Fragment = ReturnType<typeof sql.fragment>;

/** The same for any names and tags. */
function rulesFor(of: Record<'organizationId' | 'project' | 'stack' | 'tags', Fragment>): Fragment {
  return sql.fragment`(
  select json_build_object('now', floor(extract(epoch from clock_timestamp()) * 1000), 'rules', json_agg(json_build_object(
    'id', r.id, 'kind', r.kind, 'project', r.project, 'stack', r.stack,
    'tag', case when r.tag_name is not null then json_build_object('name', r.tag_name, 'value', r.tag_value) end,
    'settings', r.settings, 'note', r.note)
    order by r.stack is null, r.tag_name is null, r.project is null, r.tag_name, r.tag_value, r.set_at, r.id))::text
  from update_rules r
  where r.organization_id = ${of.organizationId} and (r.project is null or r.project = ${of.project}) and (r.stack is null or r.stack = ${of.stack})
    and (r.tag_name is null or ${of.tags} ->> r.tag_name = r.tag_value)
  having count(*) > 0) as rules`;
}

function toStack({ rules, ...stack }: Row<typeof StackWithRulesRow>): StackWithRules {
  return { ...stack, updateRules: UpdateRules.read(rules) };
}

export function createUpdateRuleRepository(db: Queryable) {
  const columns = sql.fragment`
    r.id, r.kind, r.project, r.stack, r.tag_name as "tagName", r.tag_value as "tagValue", r.settings::text as settings, r.note,
    r.set_at as "setAt", u.login as "setBy"`;
  const joins = sql.fragment`update_rules r left join users u on u.id = r.set_by`;
  return {
    findStack: async (ref: StackRef): Promise<StackWithRules | null> => {
      const row = await db.maybeOne(sql.prepared('update_rules_find_stack', StackWithRulesRow)`
        /* updateRules.findStack */ select ${stackColumns}, ${applicableRules} from ${stackJoins} where ${stackNamed(ref)}`);
      return row && toStack(row);
    },

    /**
     * Locks the stack's row until the end of the transaction. The rules are as of that time: `lockForChange` waits for a transaction that
     * began with `lockAccess`.
     */
    lockStack: async (stackId: string): Promise<StackWithRules | null> => {
      const statement = sql.prepared('update_rules_lock_stack', StackWithRulesRow)`
        /* updateRules.lockStack */
        select ${stackColumns}, ${applicableRules} from ${stackJoins} where s.id = ${stackId} and s.deleted_at is null for update of s`;
      const row = await lockedWherever(() => db.maybeOne(statement));
      return row && toStack(row);
    },

    /** Returns null if another transaction has locked the stack's row, or if the stack is under a legal hold. */
    lockIdleStack: async (stackId: string): Promise<StackWithRules | null> => {
      const row = await db.maybeOne(sql.prepared('update_rules_lock_idle_stack', StackWithRulesRow)`
        /* updateRules.lockIdleStack */
        select ${stackColumns}, ${applicableRules} from ${stackJoins}
        where s.id = ${stackId} and s.deleted_at is null and s.held_at is null for update of s skip locked`);
      return row && toStack(row);
    },

    /** Prevents changes to the organization's rules until the end of the transaction. Take it before any lock on a stack. */
    hold: (organizationId: string) =>
      db.query(sql.nothing`/* updateRules.hold */ select lock_shared(${organizationId})`),

    listOfStack: async (stackId: string): Promise<UpdateRules> => {
      const row = await db.maybeOne(sql.prepared('update_rules_of_stack', RulesRow)`
        /* updateRules.listOfStack */
        select ${applicableRules} from ${stackJoins} where s.id = ${stackId} and s.deleted_at is null`);
      return UpdateRules.read(row?.rules ?? null);
    },

    /** The stack need not exist. */
    listForNames: async (
      organizationId: string,
      { project, stack, tags }: { readonly project: string; readonly stack: string; readonly tags: object },
    ): Promise<UpdateRules> => {
      const row = await db.one(sql.rows(RulesRow)`
        /* updateRules.listForNames */
        select ${rulesFor({
          organizationId: sql.fragment`${organizationId}::uuid`,
          project: sql.fragment`${project}::text`,
          stack: sql.fragment`${stack}::text`,
          tags: sql.fragment`${JSON.stringify(tags)}::jsonb`,
        })}`);
      return UpdateRules.read(row.rules);
    },

    /**
     * Allows one transaction at a time to change rules of the organization, after running transactions that create updates there have
     * ended. An update is thus either created before the commit of the change, or sees the change. Take it under the lock for all changes
     * of people, like grants.
     */
    lockForChange: (organizationId: string) =>
      db.query(sql.nothing`
        /* updateRules.lockForChange */ select lock_exclusive(${organizationId})`),

    list: (organizationId: string) =>
      db.any(sql.rows(RuleRow)`
        /* updateRules.list */
        select ${columns} from ${joins} where r.organization_id = ${organizationId}
        order by r.kind, r.project nulls first, r.stack nulls first, r.tag_name nulls first, r.tag_value, r.set_at, r.id`),

    /** Ordered by kind and scope. */
    listPage: (
      organizationId: string,
      {
        after,
        kinds,
        limit,
      }: { readonly kinds: readonly string[] | null; readonly after: RulePosition | null; readonly limit: number },
    ) => {
      const order = sql.fragment`r.kind, coalesce(r.project, ''), coalesce(r.stack, ''), coalesce(r.tag_name, ''),
        coalesce(r.tag_value, ''), r.set_at, r.id`;
      return db.any(sql.rows(PagedRow)`
        /* updateRules.listPage */
        select ${columns}, (extract(epoch from r.set_at) * 1000000)::bigint::text as "setMicros",
          clock_timestamp() as now,
          exists (select from managed_objects o where o.organization_id = r.organization_id
            and o.kind in ('UpdateRule', 'RetentionRule') and o.object = r.id::text) as "isManaged"
        from ${joins}
        where r.organization_id = ${organizationId}
          and (${kinds === null} or r.kind = any (${sql.array([...(kinds ?? [])], 'text')}))
          and ${
            after === null
              ? sql.fragment`true`
              : sql.fragment`(${order}) > (${after[0]}, ${after[1]}, ${after[2]}, ${after[3]}, ${after[4]},
                  'epoch'::timestamptz + ${after[5]}::bigint * interval '1 microsecond', ${after[6]}::uuid)`
          }
        order by ${order} limit ${limit}`);
    },

    /** Ordered by name. `facts` limit the list to readable stacks; null for all. */
    listMatched: (organizationId: string, { project, stack, tag }: RuleScope, facts: object | null, limit: number) =>
      db.any(sql.rows(MatchedRow)`
        /* updateRules.listMatched */
        select l.project_name as project, l.stack_name as stack from stack_listings l
        where l.organization_id = ${organizationId}
          and ${tag === null ? sql.fragment`l.tag_name = ''` : sql.fragment`l.tag_name = ${tag.name} and l.tag_name <> '' and l.tag_value = ${tag.value}`}
          and (${project}::text is null or l.project_name = ${project}) and (${stack}::text is null or l.stack_name = ${stack})
          and (${facts === null} or effective_permissions(${JSON.stringify(facts)}::jsonb, l.organization_id, l.project_name, l.stack_name) & 1 = 1)
        order by l.project_name, l.stack_name limit ${limit}`),

    listFreezes: (organizationIds: readonly string[]) =>
      db.any(sql.rows(FreezeRow)`
        /* updateRules.listFreezes */
        select r.id, r.settings::text as settings, clock_timestamp() as now from update_rules r
        where r.organization_id = any (${sql.array([...organizationIds], 'uuid')}) and r.kind = 'freeze'`),

    find: (organizationId: string, id: string) =>
      db.maybeOne(sql.rows(RuleRow)`
        /* updateRules.find */ select ${columns} from ${joins} where r.organization_id = ${organizationId} and r.id = ${id}`),

    /** `bytes` counts settings and notes. */
    measure: (organizationId: string) =>
      db.one(sql.rows(SizeRow)`
        /* updateRules.measure */
        select count(*)::int as count,
          coalesce(sum(case jsonb_typeof(settings -> 'windows') when 'array' then jsonb_array_length(settings -> 'windows') end), 0)::int as windows,
          coalesce(sum(octet_length(settings::text) + octet_length(note)), 0)::int as bytes
        from update_rules where organization_id = ${organizationId}`),

    findReplaced: async (organizationId: string, rule: NewRule): Promise<string | null> => {
      const row = await db.maybeOne(sql.rows(IdRow)`
        /* updateRules.findReplaced */
        select id from update_rules
        where organization_id = ${organizationId} and kind = ${rule.kind} and slot = ${rule.slot}
          and coalesce(project, '') = ${rule.project ?? ''} and coalesce(stack, '') = ${rule.stack ?? ''}
          and coalesce(tag_name, '') = ${rule.tag?.name ?? ''} and coalesce(tag_value, '') = ${rule.tag?.value ?? ''}`);
      return row?.id ?? null;
    },

    /** Finds a rule in any slot; of several, the oldest. */
    findSame: async (
      organizationId: string,
      rule: NewRule,
      { seconds, setBy }: { readonly seconds: number; readonly setBy: string | null },
    ): Promise<string | null> => {
      const row = await db.maybeOne(sql.rows(IdRow)`
        /* updateRules.findSame */
        select id from update_rules
        where organization_id = ${organizationId} and kind = ${rule.kind} and note = ${rule.note}
          and settings = ${JSON.stringify(rule.settings)}::jsonb and (project, stack, tag_name, tag_value) is not distinct from
            (${rule.project}::text, ${rule.stack}::text, ${rule.tag?.name ?? null}::text, ${rule.tag?.value ?? null}::text)
          and set_by is not distinct from ${setBy}::uuid and set_at > clock_timestamp() - make_interval(secs => ${seconds})
        order by set_at, id limit 1`);
      return row?.id ?? null;
    },

    /** Returns the id of the rule. */
    set: async (organizationId: string, rule: NewRule, setBy: string | null): Promise<string> => {
      const row = await db.one(sql.rows(IdRow)`
        /* updateRules.set */
        insert into update_rules (organization_id, kind, slot, project, stack, tag_name, tag_value, settings, note, set_by)
        values (${organizationId}, ${rule.kind}, ${rule.slot}, ${rule.project}, ${rule.stack}, ${rule.tag?.name ?? null},
                ${rule.tag?.value ?? null}, ${JSON.stringify(rule.settings)}::jsonb, ${rule.note}, ${setBy})
        on conflict (organization_id, kind, slot, coalesce(project, ''), coalesce(stack, ''), coalesce(tag_name, ''),
                     coalesce(tag_value, ''))
        do update set settings = excluded.settings, note = excluded.note, set_at = excluded.set_at, set_by = excluded.set_by
        returning id`);
      return row.id;
    },

    /**
     * The slot stays if each rule of the kind is added to the others. Violates `update_rules_key` if another rule has the new scope and
     * slot.
     */
    change: (id: string, rule: Omit<NewRule, 'slot'> & { readonly slot: string | null }, setBy: string | null) =>
      db.query(sql.nothing`
        /* updateRules.change */
        update update_rules set slot = coalesce(${rule.slot}, slot), project = ${rule.project}, stack = ${rule.stack},
          tag_name = ${rule.tag?.name ?? null}, tag_value = ${rule.tag?.value ?? null},
          settings = ${JSON.stringify(rule.settings)}::jsonb, note = ${rule.note}, set_at = clock_timestamp(), set_by = ${setBy}
        where id = ${id}`),

    remove: async (organizationId: string, id: string): Promise<boolean> => {
      const result = await db.query(sql.nothing`
        /* updateRules.remove */ delete from update_rules where organization_id = ${organizationId} and id = ${id}`);
      return result.rowCount > 0;
    },

    listTagNames: async (organizationId: string): Promise<string[]> => {
      const rows = await db.any(sql.rows(NameRow)`
        /* updateRules.listTagNames */
        select distinct tag_name as name from update_rules
        where organization_id = ${organizationId} and tag_name is not null order by 1`);
      return rows.map(({ name }) => name);
    },
  };
}
