import { listLeafPathsInSlices } from '../../../shared/search/property-leaves.ts';
import { compareResources, joinPath, type ResourceView } from '../../../shared/search/resource-facts.ts';
import { StateDeletedError } from '../../../shared/state/retention/deleted-errors.ts';
import type { StateScan } from '../../platform/admission/state-scans.ts';
import { httpUrl } from '../../platform/http/http-url.ts';
import type {
  createResourceRepository,
  HistoryRow,
  IndexedStack,
  VersionAuthorRow,
} from '../../search/resource-repository.ts';
import { branchName } from '../../updates/setting-views.ts';
import { Blame } from './blame.ts';
import { findResource } from './find-resource.ts';

/** Changes of a resource that are read to blame its properties. */
const blamePage = 200;
const maxBlamePages = 10;

/** `view`: a resource of the newest state. Throws the errors of `scan`. */
export async function blameResource(
  scan: StateScan,
  rows: ReturnType<typeof createResourceRepository>,
  stack: IndexedStack,
  view: ResourceView,
) {
  const paths: string[] = [];
  for (const part of ['inputs', 'outputs'])
    for (const path of await listLeafPathsInSlices(view.raw(part))) paths.push(joinPath(part, path));
  const { knownFrom, newestVersion, stackId } = stack;
  const changes = new Map<number, ReturnType<typeof authorView>>();
  const blame = new Blame(paths);
  await addNewest(scan, stack, view, blame);
  const author = await rows.findVersionAuthor(stackId, newestVersion);
  if (author !== null) changes.set(newestVersion, authorView(author));
  let before: number | null = null;
  // Unread changes may have set the open properties.
  let isCut = true;
  for (let page = 0; page < maxBlamePages && !blame.isDone; page++) {
    const found: readonly HistoryRow[] = await rows.listChanges(stackId, view.key, before, blamePage);
    for (const row of found) {
      blame.add(row);
      changes.set(row.version, authorView(row));
      await scan.pause();
    }
    before = found.at(-1)?.version ?? null;
    isCut = found.length === blamePage;
    if (!isCut) break;
  }
  const properties = blame.end(isCut && before !== null ? before - 1 : knownFrom);
  const named = new Set(properties.map(({ version }) => version));
  return {
    properties,
    /** The versions that `properties` name, newest first. */
    changes: [...changes.values()].filter(({ version }) => named.has(version)),
  };
}

/**
 * Adds changes of a running update, and of updates that have just ended: the index does not know them yet. The resource is compared with
 * the newest indexed version.
 */
async function addNewest(scan: StateScan, stack: IndexedStack, view: ResourceView, blame: Blame): Promise<void> {
  const { knownTo, newestVersion: version, stackId } = stack;
  if (knownTo !== null && knownTo >= version) return;
  const former = knownTo === null ? undefined : await findFormer(scan, stackId, knownTo, view.urn);
  if (former === undefined) return blame.addUnknown(version);
  const isExact = knownTo === version - 1;
  if (former === null) return blame.add({ version, change: 'created', paths: [], pathCount: 0 }, isExact);
  const { change, paths } = await compareResources(former, view);
  blame.add({ version, change, paths, pathCount: paths.length }, isExact);
}

/** Null: it did not exist; undefined: unknown. */
async function findFormer(
  scan: StateScan,
  stackId: string,
  version: number,
  urn: string,
): Promise<ResourceView | null | undefined> {
  try {
    const state = await scan.readVersion(stackId, version);
    return state === null ? undefined : await findResource(scan, state, urn);
  } catch (error) {
    if (error instanceof StateDeletedError) return undefined;
    throw error;
  }
}

export function authorView<Author extends VersionAuthorRow>({ at, branch, ciUrl, ...row }: Author) {
  return { ...row, at: at.toISOString(), branch: branchName(branch), ciUrl: httpUrl(ciUrl) };
}
