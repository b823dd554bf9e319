import { Type } from 'typebox';
import { sql } from '../../src/shared/platform/db/sql.ts';
import type { TestApp } from './test-app.ts';

const DigestRow = Type.Object({ name: Type.String(), digest: Type.String() });

/**
 * A digest of all rows that calls of the CLI may change, by table, except for a counter that is only a ticket and for times of use. Not those of
 * the whole catalog: Postgres would plan for 60 ms, before and after each of a thousand calls.
 */
export async function digestRows(app: TestApp): Promise<Record<string, string>> {
  // Over the app's own pool: a new login takes longer than most of the calls under test.
  const rows = await app.context.db.any(sql.rows(DigestRow)`
    select name, count(*) || ':' || md5(string_agg((row - array['full_assigned', 'last_used_at'])::text, '|' order by row::text)) as digest from (
    select 'organizations' as name, to_jsonb(t) as row from organizations t
    union all select 'memberships' as name, to_jsonb(t) as row from memberships t
    union all select 'projects' as name, to_jsonb(t) as row from projects t
    union all select 'stacks' as name, to_jsonb(t) as row from stacks t
    union all select 'former_stack_names' as name, to_jsonb(t) as row from former_stack_names t
    union all select 'updates' as name, to_jsonb(t) as row from updates t
    union all select 'checkpoints' as name, to_jsonb(t) as row from checkpoints t
    union all select 'checkpoint_chunks' as name, to_jsonb(t) as row from checkpoint_chunks t
    union all select 'version_chunks' as name, to_jsonb(t) as row from version_chunks t
    union all select 'journals' as name, to_jsonb(t) as row from journals t
    union all select 'journal_entries' as name, to_jsonb(t) as row from journal_entries t
    union all select 'journal_snapshots' as name, to_jsonb(t) as row from journal_snapshots t
    union all select 'engine_events' as name, to_jsonb(t) as row from engine_events t
    union all select 'encryption_keys' as name, to_jsonb(t) as row from encryption_keys t
    union all select 'update_queue_waiters' as name, to_jsonb(t) as row from update_queue_waiters t
    union all select 'refused_runs' as name, to_jsonb(t) as row from refused_runs t
    union all select 'audit_secret_reads' as name, to_jsonb(t) as row from audit_secret_reads t
    union all select 'update_limits' as name, to_jsonb(t) as row from update_limits t
    union all select 'update_approvals' as name, to_jsonb(t) as row from update_approvals t
    union all select 'stack_listings' as name, to_jsonb(t) as row from stack_listings t
    union all select 'stack_changes' as name, to_jsonb(t) as row from stack_changes t
    union all select 'drift_runs' as name, to_jsonb(t) as row from drift_runs t
    union all select 'job_admissions' as name, to_jsonb(t) as row from job_admissions t
    union all select 'api_tokens' as name, to_jsonb(t) as row from api_tokens t
    union all select 'webhook_events' as name, to_jsonb(t) as row from webhook_events t
    ) rows group by name order by name`);
  return Object.fromEntries(rows.map(({ name, digest }) => [name, digest]));
}
