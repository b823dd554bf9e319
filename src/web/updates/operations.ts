/** The display of an operation on a resource. */
export interface OperationView {
  /** The CLI's mark. */
  sign: string;
  /** While the step runs, when it is done, and before it runs (in a preview). */
  running: string;
  done: string;
  planned: string;
  tone: 'create' | 'update' | 'delete' | 'replace' | 'same';
}

const operations: Readonly<Record<string, OperationView>> = {
  create: { sign: '+', running: 'creating', done: 'created', planned: 'create', tone: 'create' },
  update: { sign: '~', running: 'updating', done: 'updated', planned: 'update', tone: 'update' },
  delete: { sign: '-', running: 'deleting', done: 'deleted', planned: 'delete', tone: 'delete' },
  replace: { sign: '±', running: 'replacing', done: 'replaced', planned: 'replace', tone: 'replace' },
  same: { sign: '', running: 'checking', done: 'unchanged', planned: 'unchanged', tone: 'same' },
  read: { sign: '>', running: 'reading', done: 'read', planned: 'read', tone: 'same' },
  refresh: { sign: '↻', running: 'refreshing', done: 'refreshed', planned: 'refresh', tone: 'same' },
  import: { sign: '=', running: 'importing', done: 'imported', planned: 'import', tone: 'create' },
  discard: { sign: '<', running: 'discarding', done: 'discarded', planned: 'discard', tone: 'same' },
};

const aliases: ReadonlyMap<string, string> = new Map([
  ['create-replacement', 'replace'],
  ['delete-replaced', 'replace'],
  ['import-replacement', 'replace'],
  ['read-replacement', 'read'],
  ['discard-replaced', 'discard'],
  ['remove-pending-replace', 'replace'],
]);

/** An operation of a newer CLI is shown by its name. */
export function viewOperation(op: string): OperationView {
  const name = aliases.get(op) ?? op;
  if (Object.hasOwn(operations, name)) return operations[name] as OperationView;
  return { sign: '·', running: name, done: name, planned: name, tone: 'same' };
}

/** Counts of changes in the order in which they are shown, without zeros. */
export function listChanges(
  changes: Readonly<Partial<Record<string, number>>>,
): { op: string; count: number; view: OperationView }[] {
  const totals = new Map<string, number>();
  for (const [op, count = 0] of Object.entries(changes)) {
    const name = aliases.get(op) ?? op;
    if (count > 0) totals.set(name, (totals.get(name) ?? 0) + count);
  }
  const order = Object.keys(operations).filter((op) => op !== 'same');
  const names = [...order, ...[...totals.keys()].filter((op) => !order.includes(op) && op !== 'same'), 'same'];
  return names.flatMap((op) => {
    const count = totals.get(op);
    return count === undefined ? [] : [{ op, count, view: viewOperation(op) }];
  });
}
