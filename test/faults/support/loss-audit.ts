import type { Cluster } from '../../../testkit/cluster.ts';
import { query } from './audit.ts';
import { sha256 } from './documents.ts';
import { readState } from './pipelines.ts';
import type { AnyWatched, WatchedUpdate } from './watched-pipelines.ts';

/** Writes that the states lack after a loss, and the clients that were informed. */
export interface LossReport {
  /** Writes that were acknowledged. */
  acknowledged: number;
  /** Those of them that are gone. */
  lost: number;
  /** Updates that lack writes, and whose clients were asked to refresh. */
  reported: number;
  /** Updates that lack writes, but had succeeded before the loss: no client was left to inform. */
  over: number;
  /** Updates whose client was refused without having lost anything. */
  refused: number;
  /** Updates that lack writes while their clients believe that all is well, or do not know why. */
  readonly concealed: string[];
}

/** Compares the states with the responses to clients. `backAt`: when the database accepted writes again, in ms. */
export async function reportLoss(
  cluster: Pick<Cluster, 'url' | 'token' | 'databaseUrl'>,
  pipelines: readonly AnyWatched[],
  backAt: number,
): Promise<LossReport> {
  const report: LossReport = { acknowledged: 0, lost: 0, reported: 0, over: 0, refused: 0, concealed: [] };
  for (const pipeline of pipelines) {
    const text = await readState(cluster, `${pipeline.stackPath}/export`);
    const names = pipeline.kind === 'journal' ? namesIn(text) : null;
    const isRetained = names
      ? (update: WatchedUpdate) => Promise.resolve(update.acknowledged.filter((name) => !names.has(name)).length)
      : (update: WatchedUpdate) => missingDocuments(cluster, pipeline.stackPath, update);
    for (const update of pipeline.updates) {
      const missing = await isRetained(update);
      report.acknowledged += update.acknowledged.length;
      report.lost += missing;
      judge(report, { pipeline, update, missing, backAt });
    }
  }
  return report;
}

function judge(
  report: LossReport,
  {
    backAt,
    missing,
    pipeline,
    update,
  }: { pipeline: AnyWatched; update: WatchedUpdate; missing: number; backAt: number },
): void {
  const { end, id } = update;
  const isKnown = end?.kind === 'refused' && [403, 409].includes(end.status) && end.message.includes('pulumi refresh');
  if (missing === 0) report.refused += isKnown ? 1 : 0;
  else if (isKnown) report.reported++;
  else if (end?.kind === 'succeeded' && end.at < backAt) report.over++;
  else
    report.concealed.push(
      `${pipeline.name}: ${missing} writes of ${id} are gone; its client got ${JSON.stringify(end)}, database back at ${backAt}`,
    );
}

function namesIn(exported: string): Set<string> {
  const { deployment } = JSON.parse(exported) as { deployment: { resources: { urn: string }[] | null } };
  return new Set((deployment.resources ?? []).map(({ urn }) => urn.split('::').at(-1) as string));
}

/** The state of an update is its last document, so at most one is missing. */
async function missingDocuments(
  cluster: Pick<Cluster, 'url' | 'token' | 'databaseUrl'>,
  stackPath: string,
  { acknowledged, attempted, id }: WatchedUpdate,
): Promise<number> {
  const last = acknowledged.at(-1);
  if (last === undefined) return 0;
  const [row] = await query<{ version: number | null }>(
    cluster,
    'select stack_version as version from updates where id = $1',
    [id],
  );
  // Null: it had not been started yet.
  if (row === undefined || row.version === null) return acknowledged.length;
  const hash = sha256(await readState(cluster, `${stackPath}/export/${row.version}`));
  const found = attempted.indexOf(hash);
  if (found >= acknowledged.length) return 0;
  return acknowledged.length - 1 - acknowledged.indexOf(hash);
}
