import type { StateScan } from '../../platform/admission/state-scans.ts';
import type { createResourceRepository, ResourceEdges, ResourcePosition } from '../../search/resource-repository.ts';

/** Resources, dependencies (a resource may have 2,000), and characters of URNs (a URN may have 8,000). */
const maxRows = 100_000;
const maxEdges = 250_000;
const maxCharacters = 32 * 1024 * 1024;
const rowsPerPage = 5_000;
const rowsPerPause = 1_000;
/** Memory of an answer as text and JSON. */
const bytesPerCharacter = 4;
const bytesPerNumber = 32;

/** Dependencies as indexes into `names`. A URN is its head followed by its name. */
interface StackGraph {
  readonly heads: readonly string[];
  readonly names: readonly string[];
  /** By resource: its index in `heads`. */
  readonly headOf: readonly number[];
  /** By resource: its parent, or -1. */
  readonly parents: readonly number[];
  /** By resource: its dependencies. */
  readonly needs: readonly (readonly number[])[];
  /** Whether resources were left out. */
  readonly isCut: boolean;
}

/** In the order of type and name. Throws the errors of `scan`. */
export async function readGraph(
  scan: StateScan,
  rows: ReturnType<typeof createResourceRepository>,
  stackId: string,
  organization: string,
): Promise<StackGraph> {
  const { edges, isCut } = await listEdges(scan, rows, stackId, organization);
  const at = new Map<string, number>();
  const heads = new Map<string, number>();
  const headOf: number[] = [];
  for (const [index, { key, name, urn }] of edges.entries()) {
    if (index % rowsPerPause === 0) await scan.pause();
    at.set(key, index);
    const head = urn.endsWith(name) ? urn.slice(0, urn.length - name.length) : `${urn}::`;
    const known = heads.get(head) ?? heads.size;
    if (known === heads.size) heads.set(head, known);
    headOf.push(known);
  }
  const needs: number[][] = [];
  for (const [index, { dependencies }] of edges.entries()) {
    if (index % rowsPerPause === 0) await scan.pause();
    needs.push([...new Set(dependencies)].flatMap((key) => at.get(key) ?? []));
  }
  return {
    heads: [...heads.keys()],
    names: edges.map(({ name }) => name),
    headOf,
    parents: edges.map(({ parent }) => (parent === null ? -1 : (at.get(parent) ?? -1))),
    needs,
    isCut,
  };
}

/** Reads page by page, up to the limits. */
async function listEdges(
  scan: StateScan,
  rows: ReturnType<typeof createResourceRepository>,
  stackId: string,
  organization: string,
): Promise<{ readonly edges: readonly ResourceEdges[]; readonly isCut: boolean }> {
  await scan.begin();
  const edges: ResourceEdges[] = [];
  let count = 0;
  let characters = 0;
  let after: ResourcePosition | null = null;
  for (;;) {
    const page: readonly ResourceEdges[] = await rows.listEdges(stackId, after, rowsPerPage);
    for (const row of page) {
      edges.push(row);
      count += row.dependencies.length;
      characters += row.urn.length;
      if (edges.length >= maxRows || count >= maxEdges || characters >= maxCharacters) break;
    }
    const isFull = edges.length >= maxRows || count >= maxEdges || characters >= maxCharacters;
    const last = page.at(-1);
    if (isFull || last === undefined) {
      await scan.hold(bytesPerCharacter * characters + bytesPerNumber * (count + 2 * edges.length), organization);
      return { edges, isCut: isFull };
    }
    after = last;
    await scan.pause();
  }
}
