import { fixIt, type Kind } from './main-kinds.ts';

/** Other rows, or the schema, contradict these rows. */
export const rowKinds = {
  schema: {
    means: 'A trigger, a constraint or an index is disabled or invalid, by a restore or its interruption.',
    remedy: 'Restore again, or enable, validate or build it again as the owner of the tables.',
    repair: null,
  },
  'foreign-key': {
    means: 'Rows refer to rows that do not exist.',
    remedy: 'The database was changed or restored by other tools, or is damaged: restore the rows from a backup.',
    repair: null,
  },
  sequence: {
    means: 'A sequence would give a number that a row has, so new rows fail or are misordered.',
    remedy: fixIt,
    repair: 'raises it to the highest number of the rows',
  },
  'deleted-stack': {
    means: 'A stack is half deleted: it has what only deleted, or only live stacks have.',
    remedy: 'Restore the row from a backup into a copy of the database and compare.',
    repair: null,
  },
  hold: {
    means: 'A legal hold is on a deleted stack that nobody can restore, so the rest of the stack is never deleted.',
    remedy: `${fixIt} If that does not end it, the stack has data: bring its row back from a backup.`,
    repair: 'ends the hold if the stack has no updates, states, approvals and keys',
  },
  pin: {
    means: 'A pinned version has no state, or has not ended.',
    remedy: 'If the state was there, bring it back from a backup.',
    repair: 'removes the pin',
  },
  'retention-mark': {
    means: 'A version or its events exist, but are marked as deleted: reads fail.',
    remedy: fixIt,
    repair: 'removes the mark',
  },
  'retention-progress': {
    means: 'Retention has recorded updates that do not exist yet, and would pass over them.',
    remedy: fixIt,
    repair: 'looks at all updates of the stack again',
  },
  'former-name': {
    means:
      'A former name of a stack is recorded in another organization, so secrets in older states cannot be decrypted.',
    remedy: fixIt,
    repair: 'writes the organization from the stack',
  },
  'day-counter': {
    means: 'The counters of a day differ from the updates of a stack on it.',
    remedy: fixIt,
    repair: 'counts again',
  },
  'project-counter': {
    means: 'The sums of a project differ from the counters of its stacks.',
    remedy: fixIt,
    repair: 'adds the difference',
  },
  'stack-counter': {
    means: 'The stacks of an organization, or the bytes that they keep, differ from their sums.',
    remedy: fixIt,
    repair: 'adds the difference',
  },
  storage: {
    means: 'The recorded bytes of an organization differ by more than 2 % from its rows.',
    remedy: 'Wait a minute, or see the log of the measure-storage task.',
    repair: 'measures again',
  },
  lease: {
    means: 'A running update has no lease, or one that outlives its limit, and keeps its stack locked.',
    remedy: fixIt,
    repair: 'ends the lease now, or at its limit',
  },
  'update-end': {
    means: 'An ended update has no end, or a running one has, so its events are archived never or too early.',
    remedy: fixIt,
    repair: 'takes its start as the end, or removes the end',
  },
  'sequence-head': {
    means: 'An update counts fewer checkpoints than it has, so a late checkpoint could replace a newer one.',
    remedy: fixIt,
    repair: 'raises the count',
  },
  statistics: {
    means: 'The statistics of an update contradict it.',
    remedy: fixIt,
    repair: 'writes kind, outcome, end and duration from the update',
  },
  'limit-counter': {
    means: 'An update counts more or fewer changes than it has begun.',
    remedy: fixIt,
    repair: 'counts again',
  },
  'event-rows': {
    means: 'Events of an update are marked as archived, but some are not: readers miss them.',
    remedy: fixIt,
    repair: 'lets the workers archive them',
  },
  'segment-overlap': {
    means: 'Archived events of an update overlap, so readers see some twice.',
    remedy: 'Restore the rows of event_segments from a backup.',
    repair: null,
  },
  'journal-missing': {
    means: 'Journal entries have no journal, and are never replayed.',
    remedy:
      'Export the entries with SQL, run `pulumi state repair` and `pulumi refresh`, and compare with the provider.',
    repair: null,
  },
  'snapshot-left': {
    means: 'The snapshot of a journal has no journal.',
    remedy: fixIt,
    repair: 'deletes it',
  },
  chunks: {
    means: 'An older version lacks chunks, or has others than its own.',
    remedy: 'See HoldfastDocumentsDamaged in docs/runbook.md; other versions can be exported.',
    repair: null,
  },
  'chunk-base': {
    means: 'A chunk needs a chunk of another stack, or one that may need it.',
    remedy: 'See HoldfastDocumentsDamaged in docs/runbook.md; other versions can be exported.',
    repair: null,
  },
  'chunk-unswept': {
    means: 'A chunk that no version needs is not marked for deletion, so it is never deleted.',
    remedy: fixIt,
    repair: 'marks it; the sweep deletes it',
  },
  'secret-reads': {
    means: 'Reads of secrets by an update that has ended are not in the audit log.',
    remedy: fixIt,
    repair: 'adds them',
  },
  'organization-rows': {
    means: 'An organization has no row for its access, or no default policy group, so its updates cannot start.',
    remedy: fixIt,
    repair: 'adds what is missing',
  },
  'pack-version': {
    means: 'A policy pack counts fewer versions than it has, so its next version cannot be published.',
    remedy: fixIt,
    repair: 'raises the count',
  },
  'policy-group': {
    means: 'A policy group requires a version that is not published, or of another pack.',
    remedy: 'Run `pulumi policy enable` again.',
    repair: null,
  },
  'grant-role': {
    means: 'A grant has other permissions than its role.',
    remedy: fixIt,
    repair: 'writes the permissions from the role, and ends the leases that they do not permit',
  },
  'token-policy': {
    means: 'A token of a CI run is valid although the policy that gave it is gone.',
    remedy: 'Run `holdfast admin revoke` with its id.',
    repair: 'revokes it',
  },
  'key-unknown': {
    means: 'A data key is wrapped by a master key that no server has used.',
    remedy: 'Put the master key into HOLDFAST_MASTER_KEYS, and start a server.',
    repair: null,
  },
  'blob-doomed': {
    means: 'An object that something refers to is about to be deleted, or was.',
    remedy: 'See blob-missing.',
    repair: 'keeps the object',
  },
  'blob-hold': {
    means: 'A backup holds objects for longer than allowed: nothing is deleted until it ends.',
    remedy: fixIt,
    repair: 'removes the hold',
  },
  'copy-queue': {
    means: 'The second store would lose an object that something refers to, or would not get it.',
    remedy: fixIt,
    repair: 'lets the workers copy it',
  },
  'copy-idle': {
    means: 'Objects wait to be copied or deleted, and this command knows no second store.',
    remedy: 'Set HOLDFAST_SECOND_STORE as on the servers.',
    repair: null,
  },
  'copy-missing': {
    means: 'One of the two stores lacks an object that the other has.',
    remedy: 'Wait a day: workers copy it.',
    repair: 'copies it',
  },
  'copy-differs': {
    means: 'An object differs in the two stores.',
    remedy: 'If neither has the bytes that were written, see HoldfastDocumentsDamaged in docs/runbook.md.',
    repair: 'replaces the one that does not have the hash of its state',
  },
  'bundle-queue': {
    means: 'The bundle lacks the newest version of a stack, and nothing is due to change that.',
    remedy: fixIt,
    repair: 'lets the workers write it again',
  },
  claim: {
    means: 'A row is claimed or postponed longer than any process may.',
    remedy: fixIt,
    repair: 'ends that',
  },
  orphan: {
    means: 'Rows belong to something that is gone.',
    remedy: fixIt,
    repair: 'deletes them',
  },
} as const satisfies Record<string, Kind>;
