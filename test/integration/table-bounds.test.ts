import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { query } from '../support/database.ts';
import { testApp } from '../support/test-app.ts';

// Nothing grows without a bound: each table has an entry here that shows it. docs/scale.md names the bounds that operators notice.

const app = testApp();

/** Deleted with the stack, or the update, that they refer to. */
const cascade = 'cascade';
/** As many as operators, admins and identity providers have set up, or kept on purpose. */
const setUp = 'set up';
/** Another file of this directory, and the beginning of a test in it. */
type Proof = typeof cascade | typeof setUp | readonly [string, string];

const retention = (table: string): Proof => ['retention', `rows of ${table} are deleted`];
const withStack: Proof = [
  'deleted-stacks',
  'a row that an operator deletes by SQL takes all that belongs to the stack',
];

const proofs: Readonly<Record<string, Proof>> = {
  updates: cascade,
  checkpoints: ['checkpoint-races', 'two checkpoints of an update that are written at once leave one'],
  update_limits: cascade,
  update_limit_changes: cascade,
  update_statistics: cascade,
  output_losses: cascade,
  drift_runs: cascade,
  event_segments: cascade,
  engine_events: cascade,
  imported_versions: cascade,
  imported_previews: cascade,
  journals: cascade,
  journal_entries: cascade,
  journal_snapshots: cascade,
  blob_holds: ['backup', 'holds of backups that ended without removing them are removed by the next'],
  blob_copies_due: ['site', 'the second store catches up once it is back'],
  blobs: ['sweep-cost', 'marking a batch as pending deletion costs the same'],
  version_chunks: ['version-encoding', 'deleting a stack deletes its chunks'],
  checkpoint_chunks: cascade,
  version_changes: cascade,
  resource_changes: cascade,
  encryption_keys: cascade,
  state_indexes: cascade,
  stack_retention: cascade,
  stack_storage: cascade,
  stack_resources: cascade,
  state_index_due: ['state-index', 'the rows of a deleted stack go with it'],
  stack_changes: withStack,
  stack_counts: ['stack-counts', 'the rows of an organization become their sum'],
  stack_listings: withStack,
  policy_group_stacks: cascade,
  former_stack_names: cascade,
  stacks: ['quotas', 'stacks: no more than allowed'],
  bundles: setUp,
  import_runs: ['import-runs', 'an organization keeps its newest 200 runs'],
  import_run_stacks: ['import-runs', 'an organization keeps its newest 200 runs'],
  bundled_stacks: ['bundle', 'a stack that was renamed is at its new place only, and a deleted one at none'],
  left_bundled_stacks: ['bundle', 'a bundle whose location was changed and changed back follows'],
  projects: ['retention', 'projects without stacks are deleted'],
  update_approvals: retention('update_approvals'),
  update_queue_waiters: ['retention', 'lost entries of a queue are deleted'],
  update_queue_processes: ['retention', 'lost entries of a queue are deleted'],
  refused_runs: retention('refused_runs'),
  stack_days: retention('stack_days'),
  project_days: retention('project_days'),
  project_day_changes: ['ci-statistics', 'sums of projects are those of their stacks'],
  project_day_deliveries: retention('project_day_deliveries'),
  project_day_delivery_changes: ['ci-statistics', 'sums of projects are those of their stacks'],
  webhook_events: ['webhooks', 'their log is kept for 30 days'],
  webhook_deliveries: ['webhooks', 'their log is kept for 30 days'],
  embeds: ['embeds', 'there are at most 20'],
  saved_views: ['saved-views', 'at most 50 of a member, and 50 that are shared'],
  saved_view_pins: ['saved-views', 'at most 50 of a member, and 50 that are shared'],
  webhooks: ['table-limits', 'an organization, and a stack, have at most 100 webhooks'],
  trusted_issuers: ['table-limits', 'an organization trusts at most 50 issuers'],
  roles: ['roles', 'are limited in number'],
  grants: ['grant-routes', '/at most 1000/'],
  teams: ['grant-bounds', 'an organization has at most 1000 teams'],
  invitations: ['invitations', 'at most 100 invitations of an organization are open'],
  passkeys: ['table-limits', 'a user has at most 20 passkeys'],
  api_tokens: ['table-limits', 'a user has at most 100 valid tokens'],
  sessions: ['table-limits', 'a user has at most 100 sessions'],
  sign_in_links: ['sign-in-links', 'is deleted after its time'],
  sign_in_flows: retention('sign_in_flows'),
  sign_in_attempts: retention('sign_in_attempts'),
  sign_in_paces: retention('sign_in_paces'),
  exchanged_id_tokens: ['admin-issuers', 'exchanges are forgotten some minutes after their id token has expired'],
  job_results: retention('job_results'),
  job_admissions: retention('job_admissions'),
  failed_lookups: retention('failed_lookups'),
  rate_counters: retention('rate_counters'),
  processes: retention('processes'),
  organization_storage: retention('organization_storage'),
  audit_events: ['audit-chain', 'retention drops whole months'],
  audit_batches: ['audit-chain', 'retention drops whole months'],
  audit_secret_reads: setUp,
  policy_packs: ['retention', 'policy packs that were never published are deleted'],
  policy_pack_versions: ['retention', 'policy packs that were never published are deleted'],
  ...Object.fromEntries(
    [
      'organization_access organization_quotas managed_objects audit_chains',
      'blob_places maintenance_runs installation audit_chaining audit_sending holdfast_migrations master_keys',
      'organizations users user_identities user_passwords memberships mapped_memberships mapped_team_members team_members',
      'scim_users scim_groups scim_waiting_members removed_members trust_policies update_rules policy_groups policy_group_packs',
    ].flatMap((names) => names.split(' ').map((name) => [name, setUp])),
  ),
};

async function listTables(): Promise<string[]> {
  const rows = await query<{ name: string }>(
    app,
    `select t.table_name as name from information_schema.tables t join pg_class c on c.oid = format('public.%I', t.table_name)::regclass
     where t.table_schema = 'public' and t.table_type = 'BASE TABLE' and not c.relispartition order by 1`,
  );
  return rows.map(({ name }) => name);
}

test('each table has something that shows its bound', async () => {
  expect(Object.keys(proofs).toSorted()).toEqual((await listTables()).toSorted());
});

test('what is named as bounded by a stack or an update is deleted with it', async () => {
  const rows = await query<{ name: string }>(
    app,
    `with recursive owned as (
       select 'stacks'::regclass as id
       union select k.conrelid from owned o join pg_constraint k on k.confrelid = o.id and k.contype = 'f' and k.confdeltype = 'c'
     )
     select id::text as name from owned`,
  );
  const owned = rows.map(({ name }) => name);
  const named = Object.keys(proofs).filter((name) => proofs[name] === cascade);
  expect(named.filter((name) => !owned.includes(name))).toEqual([]);
});

test('the tests that show the other bounds exist', () => {
  const missing = Object.values(proofs).filter((proof) => {
    if (typeof proof === 'string') return false;
    const [file, title] = proof;
    const text = readFileSync(path.join(import.meta.dirname, `${file}.test.ts`), 'utf8');
    return !text.includes(title.replace(/^rows of (\w+) are deleted$/, "table: '$1'"));
  });
  expect(missing).toEqual([]);
});
