// What a legal hold keeps, and what may delete from its tables. test/integration/legal-holds.test.ts compares these lists with the schema and
// the source.

/** Tables with rows of stacks that a hold keeps. */
export const kept = [
  ...['stacks', 'updates', 'checkpoints', 'checkpoint_chunks', 'version_chunks', 'event_segments', 'encryption_keys'],
  ...['former_stack_names', 'journals', 'journal_entries', 'update_approvals'],
];

const ofAudit = 'The audit log has a retention of its own';
const copies = 'It says what is in the bundle';
const withTheirs = 'They go with the row of their update or stack only';
const index = 'It is derived from states';
const statistics = 'Only statistics';
const settings = 'What a stack is set to, not what it was';

/** The others, and why a hold does not keep what is in them. */
export const others: Readonly<Record<string, string>> = {
  audit_events: ofAudit,
  audit_secret_reads: ofAudit,
  bundled_stacks: copies,
  left_bundled_stacks: copies,
  engine_events: 'They move to segments',
  journal_snapshots: 'They are derived from entries',
  imported_previews: withTheirs,
  imported_versions: withTheirs,
  output_losses: withTheirs,
  update_limits: withTheirs,
  update_limit_changes: withTheirs,
  state_indexes: index,
  state_index_due: index,
  stack_resources: index,
  resource_changes: index,
  version_changes: index,
  stack_listings: 'Only stacks that are not deleted are listed',
  stack_changes: 'Only stacks that are not deleted are listed',
  stack_days: statistics,
  stack_storage: statistics,
  refused_runs: statistics,
  update_statistics: statistics,
  drift_runs: settings,
  embeds: settings,
  grants: settings,
  policy_group_stacks: settings,
  stack_retention: settings,
  webhooks: settings,
  webhook_events: 'Messages are sent, and deleted after their time',
  update_queue_waiters: 'Calls wait for a while only',
};

const looks = 'It looks for a hold itself';
const requests = 'It deletes requests that nobody has approved, which a hold does not keep';
const begun = 'It follows deletedStacks.begin, under the lock of the stack';
const idle = 'It runs under the lock of a stack that has no hold';

/** By statement or function, or by file where statements have no name. */
export const deletions: Readonly<Record<string, { readonly from: readonly string[]; readonly why: string }>> = {
  'approvals.deleteOld': { from: ['update_approvals'], why: looks },
  'approvals.dropOldest': { from: ['update_approvals'], why: requests },
  'approvals.remove': { from: ['update_approvals'], why: `${looks}; ${requests}` },
  'checkpoints.commit': { from: ['checkpoints'], why: 'The next state of the running update takes its place' },
  'checkpoints.commitCompaction': {
    from: ['checkpoints'],
    why: 'The state that the journal leads to takes its place, while the update runs or when its journal is replayed anew',
  },
  'checkpoints.replace': { from: ['checkpoints'], why: 'It is damaged, and the same state takes its place' },
  'documentChecks.replace': {
    from: ['checkpoint_chunks'],
    why: 'They are damaged, and an intact copy takes their place',
  },
  'journals.revertToBase': {
    from: ['checkpoints'],
    why: 'The journal, which a hold keeps, does not lead to it: none of its entries can be replayed',
  },
  'journals.delete': {
    from: ['journals', 'journal_entries'],
    why: `The state has all entries; otherwise, ${looks.toLowerCase()}`,
  },
  'chunks.sweep': { from: ['version_chunks'], why: 'It deletes chunks that no version needs' },
  'deletedStacks.begin': { from: ['encryption_keys'], why: looks },
  'deletedStacks.deleteCheckpoints': { from: ['checkpoints'], why: begun },
  'deletedStacks.deleteChunks': { from: ['version_chunks'], why: begun },
  'deletedStacks.deleteFormerNames': { from: ['former_stack_names'], why: begun },
  'deletedStacks.deleteHistory': { from: ['?'], why: begun },
  'deletedStacks.deleteRow': { from: ['encryption_keys', 'stacks'], why: begun },
  'deletedStacks.deleteUpdates': { from: ['journals', 'event_segments', 'checkpoints', 'updates'], why: begun },
  'restorableStacks.endTime': { from: ['encryption_keys'], why: 'A stack under a hold is refused before' },
  'retention.deleteCheckpoints': { from: ['checkpoints'], why: idle },
  'retention.deletePreviews': { from: ['updates'], why: idle },
  'retention.deleteSegments': { from: ['event_segments'], why: idle },
  'retention.releaseChunks': { from: ['checkpoint_chunks'], why: idle },
  'rowRepairs.deleteApproval': { from: ['update_approvals'], why: 'The stack does not exist' },
  'rateCounters.deleteOlderThan': { from: ['?'], why: 'Its tables are of counters' },
  'src/cli/fsck/tables/organization-check-repository.ts': { from: ['?'], why: 'The organization does not exist' },
  'src/cli/fsck/tables/stack-check-repository.ts': {
    from: ['former_stack_names'],
    why: 'It writes the same name with another organization',
  },
  'function delete_superseded_checkpoint': {
    from: ['checkpoints'],
    why: 'Another state of the same update has taken its place, and nothing refers to it',
  },
  'function forget_approvals': { from: ['update_approvals'], why: 'The row of the stack is deleted' },
};

/** What ends a hold. */
export const endings: Readonly<Record<string, string>> = {
  'stackHolds.release': 'Somebody who may manage the stack releases it',
  'src/cli/fsck/tables/stack-check-repository.ts': 'The stack is deleted for good, and nothing of it is left',
};
