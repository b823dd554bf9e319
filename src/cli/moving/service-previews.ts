import { gunzipSync, gzipSync } from 'node:zlib';
import { readServiceInfo } from '../../shared/diy/history-info.ts';
import type { SourceEntry, SourcePreview } from './moving-source.ts';
import { answers, type ListedUpdate, readAnswer } from './service-answers.ts';
import { type ServiceClient, SourceLacksError } from './service-client.ts';
import { type ListedPage, pageSize, readPages } from './service-pages.ts';

/** Compressed until the page's entries are imported, because it may be large. */
export class PackedPage {
  readonly #bytes: Buffer;
  #open: WeakRef<readonly ListedUpdate[]> | null = null;

  constructor(updates: readonly (ListedUpdate | null)[]) {
    this.#bytes = gzipSync(JSON.stringify(updates), { level: 1 });
  }

  at(index: number): ListedUpdate {
    const known = this.#open?.deref();
    const updates = known ?? (JSON.parse(gunzipSync(this.#bytes).toString('utf8')) as readonly ListedUpdate[]);
    if (known === undefined) this.#open = new WeakRef(updates);
    return updates[index] as ListedUpdate;
  }
}

/** Ended, oldest first; none if the service does not list them. `updates` are oldest first. */
export async function readPreviews(
  { client, eventsOf, onRepeated, path }: PreviewParts,
  updates: readonly { readonly id: string; readonly startTime: number }[],
): Promise<SourcePreview[]> {
  // A preview that is added meanwhile moves others to the next page, so they are collected by id.
  const found = new Map<string, Omit<SourcePreview, 'before'> & { readonly startTime: number }>();
  const read = (number: number) =>
    listPage(
      client,
      `${path}/updates/latest/previews?output-type=service&asc=false&pageSize=${pageSize}&page=${number}`,
    );
  for await (const listed of readPages(read, onRepeated)) {
    const page = new PackedPage(listed);
    for (const [at, update] of listed.entries()) {
      if (update === null) continue;
      const { kind, result, startTime, version } = update.info ?? update;
      const id = update.updateID;
      // Some services list only ids.
      if (!id || !kind || !startTime || result === 'in-progress' || result === 'not-started') continue;
      found.set(id, {
        ...{ id, startTime, baseVersion: update.version ?? version ?? null },
        info: async () => readServiceInfo(page.at(at)),
        events: eventsOf(update),
      });
    }
  }
  let next = 0;
  return [...found.values()]
    .reverse()
    .sort((a, b) => a.startTime - b.startTime)
    .map((preview) => {
      while (next < updates.length && (updates[next]?.startTime ?? 0) <= preview.startTime) next++;
      return { ...preview, before: updates[next]?.id ?? null };
    });
}

interface PreviewParts {
  readonly client: ServiceClient;
  readonly path: string;
  readonly eventsOf: (update: ListedUpdate) => SourceEntry['events'];
  /** Called if previews may be missing. */
  readonly onRepeated: () => void;
}

async function listPage(client: ServiceClient, call: string): Promise<ListedPage> {
  try {
    return readAnswer(answers.updates, await client.json(call), `${client.origin}${call}`);
  } catch (error) {
    if (error instanceof SourceLacksError) return {};
    throw error;
  }
}
