import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { bytesOf } from '../../src/shared/platform/bytes/byte-source.ts';
import type { StoredDocument } from '../../src/shared/state/checkpoints/document-store.ts';
import { type AdminRun, runHoldfast } from './admin.ts';
import { query } from './database.ts';
import { createStack, deployment, startUpdate, type TestStack } from './state.ts';
import type { TestApp } from './test-app.ts';
import { complete } from './update-calls.ts';

/** So that small states go to the blob store. */
export const smallBlobs = { HOLDFAST_INLINE_BYTES: '512' };

/** The environment of `holdfast blobs` on the app's database and data folder. */
export function blobsEnv(app: TestApp, settings: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  return {
    PATH: process.env['PATH'],
    HOLDFAST_DATABASE_URL: app.database.url,
    HOLDFAST_DATA_DIR: app.dataDir,
    ...settings,
  };
}

/** Runs `holdfast blobs` as its own process. */
export function runBlobs(
  app: TestApp,
  settings: Readonly<Record<string, string>>,
  ...args: string[]
): Promise<AdminRun> {
  return runHoldfast(blobsEnv(app, settings), 'blobs', ...args);
}

/** Stores `count` small documents that old checkpoints of a stack refer to. Returns their keys. */
export async function seedBlobs(app: TestApp, count: number): Promise<string[]> {
  await createStack(app);
  let left = count;
  const saved: StoredDocument[] = [];
  const saveNext = async (): Promise<void> => {
    while (left-- > 0) saved.push(await app.context.documents.save(bytesOf(randomBytes(700))));
  };
  await Promise.all(Array.from({ length: 8 }, saveNext));
  const keys = saved.map(({ blobKey }) => blobKey as string);
  await query(
    app,
    `insert into checkpoints (stack_id, sha256, size_bytes, stored_bytes, codec, resource_count, blob_key, encode_at)
     select (select id from stacks limit 1), d.sha256, 700, d.bytes, d.codec, 0, d.key, null
     from unnest($1::bytea[], $2::integer[], $3::text[], $4::text[]) as d (sha256, bytes, codec, key)`,
    [saved.map((each) => each.sha256), saved.map((each) => each.storedBytes), saved.map((each) => each.codec), keys],
  );
  return keys;
}

/** Goes on until stopped, through one app after the other. */
export class Traffic {
  readonly apps: TestApp[];
  readonly failures: string[] = [];
  writes = 0;
  exports = 0;
  readonly #running: Promise<void>;
  readonly #pauseMs: number;
  #isStopped = false;

  private constructor(apps: TestApp[], stacks: readonly TestStack[], pauseMs: number) {
    this.apps = apps;
    this.#pauseMs = pauseMs;
    this.#running = Promise.all(stacks.map((stack) => this.#run(stack))).then(() => {});
  }

  /** The pause after each round of a stack leaves CPU time to what runs beside. */
  static async start(apps: TestApp[], stacks: number, { pauseMs = 0 } = {}): Promise<Traffic> {
    const created: TestStack[] = [];
    for (let at = 0; at < stacks; at++) created.push(await createStack(apps[0] as TestApp));
    return new Traffic(apps, created, pauseMs);
  }

  /** Resolves when some writes and exports that began after the call have been answered. */
  async goOn(count = 4): Promise<void> {
    const { exports, writes } = this;
    while (
      !this.#isStopped &&
      this.failures.length === 0 &&
      (this.exports < exports + count || this.writes < writes + count)
    )
      await sleep(5);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
  }

  async #run(stack: TestStack): Promise<void> {
    for (let round = 0; !this.#isStopped && this.failures.length === 0; round++) {
      try {
        await this.#write(stack, round);
        if (this.#pauseMs > 0) await sleep(this.#pauseMs);
      } catch (error) {
        this.failures.push(String(error));
      }
    }
  }

  async #write(stack: TestStack, round: number): Promise<void> {
    const app = (): TestApp => this.apps[Math.floor(Math.random() * this.apps.length)] as TestApp;
    const note = randomBytes(900).toString('base64');
    const update = await startUpdate(app(), stack);
    const body = deployment(2, note);
    const saved = await app().call('PATCH', `${update.path}/checkpoint`, { auth: update.lease, body });
    if (saved.status >= 300) throw new Error(`write ${round}: ${saved.status} ${saved.text}`);
    this.writes++;
    const read = await app().call('GET', `${stack.path}/export`, { auth: stack.auth });
    if (read.status !== 200) throw new Error(`export ${round}: ${read.status} ${read.text}`);
    if (!read.text.includes(note)) throw new Error(`export ${round} lacks what was written`);
    this.exports++;
    const ended = await complete(app(), update);
    if (ended.status >= 300) throw new Error(`end ${round}: ${ended.status} ${ended.text}`);
  }
}
