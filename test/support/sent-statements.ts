import pg from 'pg';

const ofUpdates = /^(updates|stacks|journals|journalEntries|journalSnapshotRows|checkpoints|audit)\.|^(START|COMMIT)/;

/** Names of the statements that are sent to Postgres while `work` runs, by default those of updates and the ends of transactions. */
export async function sentStatements(work: () => Promise<unknown>, pattern = ofUpdates): Promise<string[]> {
  const names: string[] = [];
  const { prototype } = pg.Client;
  const original = prototype.query as (...args: unknown[]) => unknown;
  const noting = function (this: pg.Client, ...args: unknown[]): unknown {
    const { text = '' } = args[0] as { text?: string };
    const name = /\/\* (\S+) \*\//.exec(text)?.[1] ?? text;
    if (pattern.test(name)) names.push(name);
    return original.apply(this, args);
  };
  prototype.query = noting as typeof prototype.query;
  try {
    await work();
  } finally {
    prototype.query = original as typeof prototype.query;
  }
  return names;
}
