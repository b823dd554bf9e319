import { randomBytes } from 'node:crypto';
import { findBlobReader } from '../../shared/backup/blob-reader.ts';
import { createCopyQueueRepository } from '../../shared/platform/blobs/second/copy-queue-repository.ts';
import { settleCopy } from '../../shared/state/checkpoints/settle-copy.ts';
import type { FsckRun } from './fsck-run.ts';

const rowsPerPage = 1_000;

/** Their lists of objects, and the bytes of some or all objects. */
export async function checkCopies(run: FsckRun): Promise<void> {
  const { context, fixes, report, sample } = run;
  const { blobRows, copies, db, mirror } = context;
  const queue = createCopyQueueRepository(db);
  if (mirror === null) {
    const { blobs } = await queue.readLag();
    if (blobs > 0) report.add('copy-idle', `${blobs} objects`);
    return;
  }
  let different: string[] = [];
  const compare = async (key: string): Promise<void> => {
    run.step('objects in both stores');
    if (!(await copies.isSame(key))) different.push(key);
  };
  let waiting = 0;
  const settle = (key: string) => settleCopy({ ...mirror, blobRows }, { key, isDeletion: false });
  const findLacking = async (key: string): Promise<string | null> => {
    const [here, there] = [await mirror.main.stat(key), await mirror.second.stat(key)];
    return (here === null) === (there === null) ? null : here === null ? 'main store' : 'second store';
  };
  /** The object may have been copied or deleted since the stores were listed. */
  const level = async (key: string): Promise<void> => {
    const lacking = await findLacking(key);
    if (lacking === null) return;
    if (fixes) await settle(key);
    report.add('copy-missing', key, { detail: lacking, isFixed: fixes && (await findLacking(key)) === null });
  };
  // A sample begins at a random key, because the names of objects are random.
  let left = sample ?? Number.POSITIVE_INFINITY;
  const start = sample === null ? '' : `checkpoints/${randomBytes(1).toString('hex')}`;
  for (const { from, until } of start === ''
    ? [{ from: '', until: null }]
    : [
        { from: start, until: null },
        { from: '', until: start },
      ])
    for (let after = from; ; ) {
      const rows = (await blobRows.listAfter(after, rowsPerPage)).filter(({ key }) => until === null || key <= until);
      const keys = rows.filter(({ isReferenced }) => isReferenced).map(({ key }) => key);
      const absentHere = new Set(await mirror.main.findAbsent(keys));
      const absentThere = new Set(await mirror.second.findAbsent(keys));
      const uneven = keys.filter((key) => absentHere.has(key) !== absentThere.has(key));
      const queued = new Set(await queue.filterCopies(uneven));
      waiting += queued.size;
      if (fixes) for (const key of queued) await run.item('object', key, () => settle(key));
      const suspects = uneven.filter((key) => !queued.has(key));
      for (const key of await blobRows.listReferenced(suspects)) await run.item('object', key, () => level(key));
      for (const key of keys)
        if (!absentHere.has(key) && !absentThere.has(key) && left-- > 0)
          await run.item('object', key, () => compare(key));
      after = rows.at(-1)?.key ?? '';
      if (rows.length < rowsPerPage) break;
    }
  if (waiting > 0) report.notes.push(`${waiting} objects wait to be copied to the other store.`);
  // A chunk can be read once the chunks that it needs are repaired.
  for (let isProgress = fixes; isProgress; ) {
    const left: string[] = [];
    for (const key of different) {
      let isRepaired = false;
      await run.item('object', key, async () => {
        isRepaired = await repair(run, key);
      });
      if (isRepaired) report.add('copy-differs', key, { isFixed: true });
      else left.push(key);
    }
    isProgress = left.length < different.length;
    different = left;
  }
  // Other objects were replaced or deleted meanwhile.
  for (const key of different)
    await run.item('object', key, async () => {
      if (!(await copies.isSame(key))) report.add('copy-differs', key);
    });
}

/** Replaces the copy that does not have the hash in the database. Returns whether it did. */
async function repair({ context }: FsckRun, key: string): Promise<boolean> {
  const read = await findBlobReader(context, key);
  return read !== null && (await context.copies.repairAll(read));
}
