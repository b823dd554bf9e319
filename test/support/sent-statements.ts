import pg from 'pg';

/** Names of the statements that are sent to Postgres while `work` runs, beginnings and ends of transactions included. */
export async function sentStatements(work: () => Promise<unknown>): Promise<string[]> {
  const names: string[] = [];
  const { prototype } = pg.Client;
  const original = prototype.query as (...args: unknown[]) => unknown;
  const noting = function (this: pg.Client, ...args: unknown[]): unknown {
    const { text = '' } = args[0] as { text?: string };
    const name = /\/\* (\S+) \*\//.exec(text)?.[1] ?? text;
    if (
      /^(updates|stacks|journals|journalEntries|journalSnapshotRows|checkpoints|audit)\.|^(START|COMMIT)/.test(name)
    ) {
      names.push(name);
    }
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
