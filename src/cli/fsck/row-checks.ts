import { estimateTotal } from '../output/progress.ts';
import type { FindingKind } from './finding.ts';
import type { FsckRun } from './fsck-run.ts';
import { type CheckedRow, createRowCheckRepository, type RowPage } from './row-check-repository.ts';
import { createRowRepairRepository } from './row-repair-repository.ts';
import { createTableCheckRepository, type TableCheck } from './tables/table-check-repository.ts';

const rowsPerPage = 500;

type Repair = (run: FsckRun, row: CheckedRow) => Promise<unknown>;
type Repairs = Partial<Record<FindingKind, Repair>>;

function inTransaction(
  work: (repairs: ReturnType<typeof createRowRepairRepository>, row: CheckedRow) => Promise<unknown>,
): Repair {
  return ({ context: { db } }, row) => db.inTransaction((tx) => work(createRowRepairRepository(tx), row));
}

/** Rows of other kinds are left alone. */
const repairs: Repairs = {
  // The id of a row of the list is its key.
  listing: inTransaction((rows, { id }) => (id.startsWith('[') ? rows.unlist(id) : rows.list(id))),
  'change-listing': inTransaction((rows, { id }) => rows.noteChange(id)),
  restorable: inTransaction((rows, { id }) => rows.setRestorableOrganization(id)),
  lock: inTransaction((rows, { id }) => rows.lock(id)),
  version: inTransaction((rows, { id }) => rows.raiseVersion(id)),
  'update-organization': inTransaction((rows, { id }) => rows.setUpdateOrganization(id)),
  'update-stack': inTransaction((rows, { id }) => rows.setStatisticsStack(id)),
  approval: inTransaction((rows, { id }) => rows.deleteApproval(id)),
  'journal-open': async ({ context }, { id }) => {
    await context.db.inTransaction((tx) => createRowRepairRepository(tx).endJournal(id));
    await context.compactor.compact(id);
  },
  'journal-waiting': ({ context }, { id }) => context.compactor.compact(id),
  'index-behind': ({ context }, { id }) => context.indexer.rebuild(id, { allVersions: false }),
};

/** Also makes the safe repairs. */
export async function checkRows(run: FsckRun, table: string): Promise<void> {
  const list = createRowCheckRepository(run.context.db)[table];
  if (!list) throw new Error(`There is no check of ${table}`);
  await checkPages(run, table, list, repairs);
}

/** Like `checkRows`, for a check with its own repairs. */
export async function checkTable(run: FsckRun, check: TableCheck): Promise<void> {
  const own = check.problems.flatMap(({ kind, repair }): [FindingKind, Repair][] =>
    repair
      ? [
          [
            kind,
            ({ context: { db } }, { id }) =>
              db.inTransaction((tx) => createTableCheckRepository(tx).repair(repair(id))),
          ],
        ]
      : [],
  );
  await checkPages(run, check.name, createTableCheckRepository(run.context.db).page(check), Object.fromEntries(own));
}

async function checkPages(run: FsckRun, table: string, list: RowPage, repairs: Repairs): Promise<void> {
  for (let after: string | null = null; ; ) {
    const page: readonly CheckedRow[] = await list(after, rowsPerPage);
    const last = page.at(-1)?.id ?? '';
    run.step(table, page.length, (count) => (page.length < rowsPerPage ? count : estimateTotal(count, last)));
    const wrong = page.filter(({ problems }) => problems !== '');
    const failures = run.fixes ? await repairRows(run, wrong, repairs) : new Map<string, string>();
    // A row that is still wrong was not repaired, even if the repair succeeded. New rows may push it off its page.
    const rest = run.fixes && wrong.length > 0 ? await list(after, 2 * rowsPerPage) : page;
    const left = new Map(rest.map(({ id, problems }) => [id, problems.split(' ')]));
    for (const { id, object, problems } of wrong)
      for (const kind of problems.split(' ') as FindingKind[]) {
        const detail = failures.get(`${kind} ${id}`) ?? null;
        run.report.add(kind, object, { detail, isFixed: detail === null && !left.get(id)?.includes(kind) });
      }
    after = page.at(-1)?.id ?? null;
    if (after === null || page.length < rowsPerPage) return;
  }
}

/** Returns the failures, by kind and id. */
async function repairRows(run: FsckRun, wrong: readonly CheckedRow[], repairs: Repairs): Promise<Map<string, string>> {
  const failures = new Map<string, string>();
  for (const row of wrong)
    for (const kind of row.problems.split(' ') as FindingKind[])
      try {
        await repairs[kind]?.(run, row);
      } catch (error) {
        failures.set(`${kind} ${row.id}`, `not repaired: ${(error as Error).message}`);
      }
  return failures;
}
