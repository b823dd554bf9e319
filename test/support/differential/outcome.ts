import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { compactEndedUpdates } from '../../../src/workers/state/compact-journals.ts';
import { createTestApp, createTestDatabase, type TestApp, type TestDatabase } from '../test-app.ts';
import type { TestSettings } from '../test-settings.ts';
import { until } from '../until.ts';
import { differingRows, nameFixtures, readConstants, readRows } from './fixture-rows.ts';
import { type SeededFixture, seedFixtures } from './seeded-fixture.ts';

/** Fixtures that are played at once. */
const atOnce = 6;

/** Nothing has happened to the fixtures yet. */
export interface Original extends AsyncDisposable {
  readonly database: TestDatabase;
  readonly fixtures: readonly SeededFixture[];
  /** Ids and times in it. */
  readonly constants: ReadonlySet<string>;
}

/** What has come of all fixtures in one copy. */
export interface Outcome<A> {
  readonly answers: ReadonlyMap<string, readonly A[]>;
  readonly rows: readonly string[];
}

export async function createOriginal(count: number): Promise<Original> {
  const database = await createTestDatabase();
  const client = new pg.Client({ connectionString: database.ownerUrl });
  await client.connect();
  try {
    const seeded = await seedFixtures(client, count);
    const constants = await readConstants(client);
    return { database, fixtures: seeded, constants, [Symbol.asyncDispose]: () => database[Symbol.asyncDispose]() };
  } finally {
    await client.end();
  }
}

/** In a copy of the fixtures' database. */
export interface Play<A> {
  readonly play: (replicas: readonly TestApp[], client: pg.Pool, fixture: SeededFixture) => Promise<readonly A[]>;
  readonly replicas?: number;
  readonly settings?: TestSettings;
}

/** Plays all fixtures in a copy. */
export async function playBy<A>(
  { constants, database: original, fixtures }: Original,
  { play, replicas: count = 1, settings = {} }: Play<A>,
): Promise<Outcome<A>> {
  await using database = await createTestDatabase(original);
  const client = new pg.Pool({ connectionString: database.ownerUrl, max: atOnce });
  const dataDir = mkdtempSync(path.join(tmpdir(), 'holdfast-ways-'));
  const replicas: TestApp[] = [];
  try {
    const options = { database, dataDir, settings: { leaseSeconds: 3600, ...settings } };
    while (replicas.length < count) replicas.push(await createTestApp(options));
    const left = [...fixtures];
    const answers = new Map<string, readonly A[]>();
    const playNext = async (): Promise<void> => {
      for (let next = left.shift(); next; next = left.shift())
        answers.set(next.name, await play(replicas, client, next));
    };
    await Promise.all(Array.from({ length: atOnce }, playNext));
    await settle(replicas[0] as TestApp, client);
    return { answers, rows: await readRows(client, constants) };
  } finally {
    for (const replica of replicas) await replica[Symbol.asyncDispose]();
    await client.end();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** Rows and answers, each with the name of its fixture. */
export function differences<A>({ fixtures }: Original, left: Outcome<A>, right: Outcome<A>): string[] {
  const answers = fixtures.flatMap(({ name }) => {
    const [ofLeft, ofRight] = [left.answers.get(name) ?? [], right.answers.get(name) ?? []];
    return ofLeft.flatMap((answer, at) => {
      const texts = [answer, ofRight[at]].map((each) => JSON.stringify({ fixture: name, at, ...(each as object) }));
      return texts[0] === texts[1] ? [] : [`- ${texts[0]}`, `+ ${texts[1]}`];
    });
  });
  return [...answers, ...nameFixtures(differingRows(left.rows, right.rows), fixtures)];
}

/** Ends what is left for the background. */
async function settle(app: TestApp, client: pg.Pool): Promise<void> {
  await compactEndedUpdates(app.context);
  const claimed = 'select 1 from journals where compaction_claim is not null';
  await until(async () => (await client.query(claimed)).rowCount === 0, 'compactions have ended');
}
