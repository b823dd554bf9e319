import type { Replica } from '../../shared/platform/db/replica/replica.ts';
import type { Queryable } from '../../shared/platform/db/sql.ts';
import type { StackRef } from '../../shared/stacks/names.ts';
import {
  createHistoryRepository,
  type HistoryRepository,
  type HistoryView,
} from '../../shared/updates/history-repository.ts';
import { chunkBytes, jsonString } from '../platform/http/streamed-response.ts';
import { historyJson, largeText, updateInfoJson, wholeBytes } from './update-info.ts';
import { updateNotFound } from './update-not-found.ts';

export type FoundUpdate = NonNullable<Awaited<ReturnType<HistoryRepository['find']>>>;

export class HistoryService {
  readonly #history: HistoryRepository;
  readonly #db: Queryable;
  readonly #replica: Replica | null;

  constructor({ history, db, replica }: { history: HistoryRepository; db: Queryable; replica: Replica | null }) {
    this.#history = history;
    this.#db = db;
    this.#replica = replica;
  }

  /** Comma-separated JSON objects, newest first. `page` null means all. */
  async *json(
    stackId: string,
    page: { readonly limit: number; readonly offset: number } | null,
    { form, shown }: HistoryView,
  ): AsyncGenerator<string> {
    yield* historyJson(createHistoryRepository(await this.#beginRead(), form), stackId, page, shown);
  }

  /**
   * The newest update as JSON. `pulumi config refresh` writes its configuration to the stack's file, so the CLI gets the configuration in
   * force: an earlier update's if this one has none or never started.
   */
  async latestJson(stackId: string, { form, shown }: HistoryView): Promise<AsyncGenerator<string> | null> {
    const newest = { before: null, offset: 0, shown };
    const history = createHistoryRepository(await this.#beginRead(), form);
    const [latest] = await history.list(stackId, newest, { limit: 1, maxBytes: chunkBytes, wholeBytes });
    if (!latest) return null;
    const inForce = form === 'cli' ? await history.findConfiguration(stackId, wholeBytes) : null;
    return updateInfoJson(history, latest, inForce?.updateId === latest.id ? null : inForce);
  }

  async listLatestPreviews(
    stackId: string,
    page: { readonly limit: number; readonly offset: number },
  ): Promise<readonly string[]> {
    const previews = await createHistoryRepository(await this.#beginRead()).listPreviewIds(stackId, page);
    return previews.map(({ id }) => id);
  }

  async getUpdate(updateId: string, ref: StackRef): Promise<FoundUpdate> {
    const update = await this.#history.find(updateId, ref, chunkBytes);
    if (!update) throw updateNotFound(updateId);
    return update;
  }

  /** The message as a JSON string. */
  async *messageJson({ id, message }: FoundUpdate): AsyncGenerator<string> {
    if (message !== null) yield JSON.stringify(message);
    else yield* jsonString(largeText(this.#history, id, 'message'));
  }

  async #beginRead(): Promise<Queryable> {
    return (await this.#replica?.begin()) ?? this.#db;
  }
}
