import { diffProperties } from '../../shared/search/property-leaves.ts';
import {
  compareResources,
  digestOf,
  joinPath,
  type ResourceView,
  viewResource,
} from '../../shared/search/resource-facts.ts';
import type { StackRef } from '../../shared/stacks/names.ts';
import { stackNotFound } from '../../shared/stacks/stack-errors.ts';
import type { StateScan } from '../platform/admission/state-scans.ts';
import type { ApiContext } from '../platform/api-context.ts';
import { createResourceRepository } from '../search/resource-repository.ts';
import { noSuchVersion } from './no-such-version.ts';
import { nameViews, ValueViews } from './value-views.ts';

/** The kept texts of a page's resources, of both states; the page ends early. */
const maxPageBytes = 16 * 1024 * 1024;
/** Differences of one resource that are shown. */
const maxPaths = 200;

export interface PropertyChange {
  readonly path: string;
  readonly before: unknown;
  readonly after: unknown;
}

export interface ResourceDifference {
  readonly urn: string;
  readonly type: string;
  readonly name: string;
  readonly change: 'created' | 'updated' | 'deleted' | 'replaced';
  readonly paths: PropertyChange[];
  /** Counts all differences; `paths` has the first ones. */
  readonly pathCount: number;
}

/** A differing resource while a page is built. */
interface Differing {
  readonly key: string;
  readonly after: Buffer | null;
  before: Buffer | null;
}

export interface VersionDiffQuery {
  readonly from: number;
  readonly to: number;
  /** Other resources are not compared. */
  readonly typePrefix: string;
  readonly offset: number;
  readonly limit: number;
}

export class VersionService {
  readonly #context: ApiContext;

  constructor(context: ApiContext) {
    this.#context = context;
  }

  /** Newest first. `changed`: null if it is not known, or not yet. */
  async list(ref: StackRef, before: number | null, limit: number) {
    const rows = createResourceRepository(this.#context.db);
    const stack = await rows.find(ref);
    if (!stack) throw stackNotFound(ref);
    const found = await rows.listVersions(stack.stackId, before, limit + 1);
    const items = found.slice(0, limit).map(({ at, created, deleted, replaced, updated, ...row }) => ({
      ...row,
      at: at.toISOString(),
      changed:
        created === null || updated === null || replaced === null || deleted === null
          ? null
          : { created, updated, deleted, replaced },
    }));
    return { items, next: found.length > limit ? (items.at(-1)?.version ?? null) : null };
  }

  /**
   * Version 0 is the stack before its first version. Resources come in the order of `to`, then deleted ones. Both states are read as
   * streams; only the digests of resources and the texts of one page are kept. `next`: how many differing resources to skip. Throws the
   * errors of `scan`.
   */
  async diff(scan: StateScan, ref: StackRef, { from, limit, offset, to, typePrefix }: VersionDiffQuery) {
    const stack = await this.#context.stacks.find(ref);
    if (!stack) throw stackNotFound(ref);
    const isLeftOut = (view: ResourceView): boolean => view.isDeleted || !view.string('type').startsWith(typePrefix);
    const before = new Map<string, { readonly digest: string; readonly bytes: number }>();
    const beforeDigests = new Set<string>();
    await this.#scan(scan, stack.id, from, async (text) => {
      const view = await viewResource(text);
      if (isLeftOut(view)) return;
      const digest = digestOf(text);
      before.set(view.key, { digest, bytes: text.length });
      beforeDigests.add(digest);
    });
    const page = new Map<string, Differing>();
    const seen = new Set<string>();
    let passed = 0;
    let bytes = 0;
    let isFull = false;
    const take = (key: string, after: Buffer | null): void => {
      if (passed < offset) passed++;
      else if (page.size === limit || bytes > maxPageBytes) isFull = true;
      else if (!isFull) {
        bytes += (after?.length ?? 0) + (before.get(key)?.bytes ?? 0);
        page.set(key, { key, after: after && Buffer.from(after), before: null });
      }
    };
    await this.#scan(scan, stack.id, to, async (text) => {
      const digest = digestOf(text);
      const view = await viewResource(text);
      if (isLeftOut(view)) return;
      const { key } = view;
      seen.add(key);
      if (!beforeDigests.has(digest) || before.get(key)?.digest !== digest) take(key, text);
    });
    for (const key of before.keys()) {
      if (!seen.has(key)) take(key, null);
      await scan.pause();
    }
    if ([...page.keys()].some((key) => before.has(key)))
      await this.#scan(scan, stack.id, from, async (text) => {
        const view = await viewResource(text);
        const differing = view.isDeleted ? undefined : page.get(view.key);
        if (differing) differing.before = Buffer.from(text);
      });
    const items: ResourceDifference[] = [];
    const values = new ValueViews();
    let count = 0;
    for (const each of page.values()) {
      if (values.isFull) break;
      const item = await describe(each, values);
      if (item) items.push(item);
      count++;
      await scan.pause();
    }
    return { items, next: isFull || count < page.size ? offset + count : null };
  }

  async #scan(
    scan: StateScan,
    stackId: string,
    version: number,
    onResource: (text: Buffer) => Promise<void>,
  ): Promise<void> {
    if (version === 0) return;
    const state = await scan.readVersion(stackId, version);
    if (!state) throw noSuchVersion(version);
    await scan.scanResources(state, onResource);
  }
}

/** Null if the difference is not real. */
async function describe({ after, before }: Differing, values: ValueViews): Promise<ResourceDifference | null> {
  const was = before && (await viewResource(before));
  const is = after && (await viewResource(after));
  const shown = is ?? was;
  if (shown === null) return null;
  const compared = was && is ? await compareResources(was, is) : null;
  if (compared?.change === 'updated' && compared.paths.length === 0) return null;
  const paths: PropertyChange[] = [];
  let pathCount = 0;
  for (const path of compared?.paths ?? []) {
    if (/^(inputs|outputs)($|[.[])/.test(path)) continue;
    if (++pathCount <= maxPaths) paths.push(await values.property(path, was?.raw(path), is?.raw(path)));
  }
  for (const part of ['inputs', 'outputs'])
    for (const { after: next, before: old, path } of await diffProperties(
      was?.raw(part) ?? null,
      is?.raw(part) ?? null,
    ))
      if (++pathCount <= maxPaths) paths.push(await values.property(joinPath(part, path), old?.text, next?.text));
  return {
    ...nameViews(shown.urn, shown.string('type')),
    change: compared?.change ?? (is ? 'created' : 'deleted'),
    paths,
    pathCount,
  };
}
