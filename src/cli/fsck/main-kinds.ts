/** `repair` is the effect of `--fix`; null: it has none. */
export interface Kind {
  readonly means: string;
  readonly remedy: string;
  readonly repair: string | null;
}

/** The remedy of findings that `--fix` repairs from other rows. */
export const fixIt = 'Run `holdfast admin fsck --fix`.';
const restoreIt = 'Restore the row from a backup into a copy of the database and compare.';

/** Scripts read the names, which are stable. */
export const mainKinds = {
  listing: {
    means: 'Lists of stacks show a stack wrongly, or not at all.',
    remedy: fixIt,
    repair: 'writes the rows of the list from the stack, or deletes them',
  },
  'change-listing': {
    means: 'The list of the stacks that changed last shows a stack wrongly, or not at all.',
    remedy: fixIt,
    repair: 'writes the row from the stack, or deletes it',
  },
  restorable: {
    means: 'A deleted stack that can be restored is not in the list of its organization.',
    remedy: fixIt,
    repair: 'writes the organization from the project of the stack',
  },
  lock: {
    means:
      'A stack is locked by an update that does not run, or not locked by the one that runs, so no update can start, or two can.',
    remedy: fixIt,
    repair: 'gives the lock to the update that runs, or to none',
  },
  version: {
    means: 'The version of a stack is lower than the version of its newest update, so the next update cannot start.',
    remedy: fixIt,
    repair: 'raises the version to that of the newest update',
  },
  head: {
    means: 'The newest state of a stack is not the state of its newest version.',
    remedy:
      'Compare both with `pulumi stack export --version`, and run `holdfast admin restore ORG/PROJECT/STACK VERSION`.',
    repair: null,
  },
  'foreign-state': {
    means: 'A stack or an update refers to a state of another stack.',
    remedy: restoreIt,
    repair: null,
  },
  'update-organization': {
    means: 'An update counts for another organization than that of its stack.',
    remedy: fixIt,
    repair: 'writes the organization from the stack',
  },
  'update-stack': {
    means: 'The journal, the drift or the statistics of an update are recorded for another stack.',
    remedy: fixIt,
    repair: 'writes the stack from the update',
  },
  approval: {
    means: 'An approval is for a stack that does not exist.',
    remedy: fixIt,
    repair: 'deletes the approval',
  },
  'journal-counter': {
    means: 'A journal does not have as many entries as were acknowledged.',
    remedy:
      'Run `holdfast admin journal ORG/PROJECT/STACK`, then `pulumi state repair` and `pulumi refresh`, and compare with the provider.',
    repair: null,
  },
  'journal-open': {
    means: 'A journal counts as running although its update has ended, so the state lacks its entries.',
    remedy: fixIt,
    repair: 'notes the end, and replays the journal',
  },
  'journal-waiting': {
    means: 'The journal of an update that ended over an hour ago is not replayed.',
    remedy: 'If no worker runs, start one; otherwise see its log.',
    repair: 'replays the journal',
  },
  'journal-invalid': {
    means: 'Entries of a journal could not be replayed; the stack accepts no changes.',
    remedy: 'See HoldfastJournalInvalid in docs/runbook.md.',
    repair: null,
  },
  'document-damaged': {
    means: 'The bytes of a state are missing, or differ from the written bytes.',
    remedy: 'See HoldfastDocumentsDamaged in docs/runbook.md; other versions can be exported.',
    repair: 'replaces it from an equal state or from its journal, if there is one',
  },
  'snapshot-damaged': {
    means: 'The bytes of a snapshot of a journal are missing or wrong.',
    remedy: fixIt,
    repair: 'drops it',
  },
  'segment-damaged': {
    means: 'Archived events are missing or wrong.',
    remedy: 'Bring back the object from a backup of the blob store.',
    repair: null,
  },
  'archive-damaged': {
    means: 'The archive of a policy pack is missing or wrong.',
    remedy: 'Publish the policy pack again under another version.',
    repair: null,
  },
  'blob-missing': {
    means: 'The blob store lacks an object that something refers to.',
    remedy: 'Bring it back from a backup: see HoldfastBlobsMissing in docs/runbook.md.',
    repair: null,
  },
  'blob-unknown': {
    means: 'The blob store has an object unknown to the database.',
    remedy:
      'Nothing, unless space is short: after a restore to an earlier point it may be needed. See "Restore" in docs/backup.md.',
    repair: 'leaves it to the sweep, which deletes it after the retention, unless there are more than blobs in use',
  },
  'blob-unswept': {
    means: 'An object that nothing refers to is not marked for deletion, so it is never deleted.',
    remedy: fixIt,
    repair: 'marks it; the sweep deletes it after the retention',
  },
  'blob-shared': {
    means: 'Another installation uses the same blob store.',
    remedy: 'Each may delete the objects of the other: give one of them another bucket.',
    repair: null,
  },
  'blob-key': {
    means: 'Objects are encrypted by a data key that is gone.',
    remedy: 'Bring back the row of encryption_keys from a backup.',
    repair: null,
  },
  'master-key': {
    means: 'The master keys of this command cannot be used, so no key and no encrypted object is checked.',
    remedy: 'Set HOLDFAST_MASTER_KEYS as on the servers.',
    repair: null,
  },
  'data-key': {
    means: 'A data key cannot be unwrapped: the secrets of its stack, or encrypted objects, cannot be read.',
    remedy: 'Put its master key back into HOLDFAST_MASTER_KEYS.',
    repair: null,
  },
  'webhook-secret': {
    means: 'The secret of a webhook cannot be decrypted; its deliveries fail.',
    remedy: 'Put its master key back into HOLDFAST_MASTER_KEYS, or set another secret.',
    repair: null,
  },
  audit: {
    means: 'The audit log was changed after it was chained.',
    remedy: 'See docs/audit.md; compare with the exported log or a backup.',
    repair: null,
  },
  'index-behind': {
    means: 'Searches, or the graph of references, show an older state of a stack, and nothing is due to change that.',
    remedy: fixIt,
    repair: 'indexes the stack again',
  },
  'index-wrong': {
    means: 'Searches find other resources than the newest state of a stack has.',
    remedy: fixIt,
    repair: 'indexes the stack again',
  },
  'not-checked': {
    means: 'A check could not be done.',
    remedy: 'Remove the cause and run the command again.',
    repair: null,
  },
} as const satisfies Record<string, Kind>;
