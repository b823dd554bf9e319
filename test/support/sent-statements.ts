import pg from 'pg';

const ofUpdates = /^(updates|stacks|journals|journalEntries|journalSnapshotRows|checkpoints|audit)\.|^(START|COMMIT)/;

/** Names of the statements that are sent to Postgres while `work` runs, by default those of updates and the ends of transactions. */
export async function sentStatements(work: () => Promise<unknown>, pattern = ofUpdates): Promise<string[]> {
  const names: string[] = [];
  const { prototype } = pg.Client;
  const original = prototype.query as (...args: unknown[]) => unknown;
  const noting = function (this: pg.Client, ...args: unknown[]): unknown {
    const name = nameOf(args[0]);
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

/** Names of the statements that are sent to Postgres while `work` runs, those together that do not wait for each other. */
export async function roundTrips(work: () => Promise<unknown>, pattern: RegExp): Promise<string[][]> {
  const trips: string[][] = [];
  let underWay = 0;
  const { prototype } = pg.Client;
  const original = prototype.query as (...args: unknown[]) => unknown;
  const noting = function (this: pg.Client, ...args: unknown[]): unknown {
    const name = nameOf(args[0]);
    const result = original.apply(this, args);
    if (!pattern.test(name)) return result;
    if (underWay++ === 0) trips.push([]);
    trips.at(-1)?.push(name);
    const answered = (): void => void underWay--;
    Promise.resolve(result).then(answered, answered);
    return result;
  };
  prototype.query = noting as typeof prototype.query;
  try {
    await work();
  } finally {
    prototype.query = original as typeof prototype.query;
  }
  return trips;
}

function nameOf(query: unknown): string {
  const { text = '' } = query as { text?: string };
  return /\/\* (\S+) \*\//.exec(text)?.[1] ?? text;
}
