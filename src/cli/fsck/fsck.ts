import type { AppContext } from '../../shared/context.ts';
import { checkCopies } from './copy-checks.ts';
import { checkHeads, checkStoredDocuments } from './document-checks.ts';
import type { FsckReport } from './finding.ts';
import { type FsckOptions, FsckRun } from './fsck-run.ts';
import { checkRows, checkTable } from './row-checks.ts';
import { checkSchema } from './schema-checks.ts';
import { checkAllKeys, checkAudit, checkBlobs, checkStorage } from './store-checks.ts';
import { dueRowChecks } from './tables/due-row-check-repository.ts';
import { counterChecks, organizationChecks } from './tables/organization-check-repository.ts';
import { projectDayChecks } from './tables/project-day-check-repository.ts';
import { stackChecks } from './tables/stack-check-repository.ts';
import { updateChecks } from './tables/update-check-repository.ts';
import { versionChecks } from './tables/version-check-repository.ts';

const tableChecks = [
  ...organizationChecks,
  ...stackChecks,
  ...projectDayChecks,
  ...updateChecks,
  ...versionChecks,
  ...dueRowChecks,
  ...counterChecks,
];

/**
 * Checks the invariants of database and blob store, while servers run. Changes nothing unless it `fixes`. A check that fails does not stop
 * the others.
 */
export async function fsck(context: AppContext, options: FsckOptions): Promise<FsckReport> {
  const run = new FsckRun(context, options);
  for (const table of ['stacks', 'listings', 'changes', 'updates', 'journals', 'approvals'])
    await run.item('rows of', table, () => checkRows(run, table));
  for (const check of tableChecks) await run.item('rows of', check.name, () => checkTable(run, check));
  await run.item('schema', '', () => checkSchema(run));
  await run.item('keys', '', () => checkAllKeys(run, options.ring));
  await run.item('blobs', '', () => checkBlobs(run));
  await run.item('second store', '', () => checkCopies(run));
  await run.item('documents', '', () => checkStoredDocuments(run));
  await run.item('heads', '', () => checkHeads(run));
  await run.item('audit log', '', () => checkAudit(run));
  await run.item('storage', '', () => checkStorage(run));
  return run.report;
}
