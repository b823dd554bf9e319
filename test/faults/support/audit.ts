import { ListMultipartUploadsCommand, S3Client } from '@aws-sdk/client-s3';
import pg from 'pg';
import type { BlobStore } from '../../../src/shared/platform/blobs/blob-store.ts';
import { openBlobStore } from '../../../src/shared/platform/blobs/blob-stores.ts';
import { parseConfig } from '../../../src/shared/platform/config/config.ts';
import { openDatabase } from '../../../src/shared/platform/db/database.ts';
import { createLogger } from '../../../src/shared/platform/logger/logger.ts';
import { beginReconcile, type ReconcileCounts, reconcile } from '../../../src/shared/state/blobs/reconcile-blobs.ts';
import { createBlobRepository } from '../../../src/shared/state/checkpoints/blob-repository.ts';
import type { Cluster } from '../../../testkit/cluster.ts';
import type { CliPipeline } from './cli-pipeline.ts';
import { sha256 } from './documents.ts';
import { DocumentPipeline, ImportPipeline, JournalPipeline, type Pipeline, readState } from './pipelines.ts';
import { QueuedPipeline } from './queued-pipelines.ts';

/** Everything that is missing after the storm, each in a sentence. */
export async function findLostWrites(
  cluster: Cluster,
  pipelines: readonly Pipeline[],
  cliPipelines: readonly CliPipeline[],
): Promise<string[]> {
  const lost: string[] = [];
  for (const pipeline of pipelines) {
    const text = await readState(cluster, `${pipeline.stackPath}/export`);
    if (pipeline instanceof JournalPipeline) {
      lost.push(...(await lostResources(pipeline, text)), ...(await lostEvents(cluster, pipeline)));
    }
    if (
      pipeline instanceof DocumentPipeline ||
      pipeline instanceof ImportPipeline ||
      pipeline instanceof QueuedPipeline
    ) {
      const { ledger, name } = pipeline;
      if (!ledger.isEmpty && !ledger.mayBe().has(sha256(text)))
        lost.push(`${name}: its state is not the last acknowledged one`);
      // The newest are as good as any: each was created in the storm.
      for (const { version, mayBe } of ledger.versions.slice(-10)) {
        const state = await readState(cluster, `${pipeline.stackPath}/export/${version}`);
        if (!mayBe.has(sha256(state))) lost.push(`${name}: version ${version} is not the state that was acknowledged`);
      }
    }
  }
  for (const cli of cliPipelines) {
    const rounds = await cli.rounds();
    const lostRound = rounds.some((round) => round < cli.succeeded || round > cli.begun);
    if (lostRound || (cli.succeeded > 0 && rounds.length === 0)) {
      lost.push(
        `${cli.name}: round ${cli.succeeded} succeeded and ${cli.begun} was begun, its resources are of ${rounds}`,
      );
    }
  }
  return lost;
}

async function lostResources({ ledger, name }: JournalPipeline, exported: string): Promise<string[]> {
  const { deployment } = JSON.parse(exported) as { deployment: { resources: { urn: string }[] | null } };
  const found = (deployment.resources ?? []).map(({ urn }) => urn.split('::').at(-1) as string);
  const names = new Set(found);
  const missing = [...ledger.acknowledged].filter((each) => !names.has(each));
  const foreign = found.filter((each) => !ledger.attempted.has(each));
  return [
    ...(missing.length > 0
      ? [`${name}: ${missing.length} acknowledged resources are missing: ${missing.slice(0, 5)}`]
      : []),
    ...(foreign.length > 0 ? [`${name}: resources that were never sent: ${foreign.slice(0, 5)}`] : []),
    ...(names.size < found.length ? [`${name}: ${found.length - names.size} resources are there twice`] : []),
  ];
}

/** Some of the events are archived by now. */
async function lostEvents(cluster: Cluster, { events, name, stackPath }: JournalPipeline): Promise<string[]> {
  const lost: string[] = [];
  for (const [id, acknowledged] of events) {
    const found: number[] = [];
    for (let token: string | null = ''; token !== null; ) {
      const text: string = await readState(cluster, `${stackPath}/update/${id}/events?continuationToken=${token}`);
      const page = JSON.parse(text) as { events: { sequence: number }[]; continuationToken: string | null };
      found.push(...page.events.map(({ sequence }) => sequence));
      token = page.events.length > 0 ? page.continuationToken : null;
    }
    const missing = acknowledged.filter((sequence) => !found.includes(sequence));
    if (missing.length > 0) lost.push(`${name}: acknowledged events of ${id} are missing: ${missing.slice(0, 3)}`);
    if (new Set(found).size < found.length) lost.push(`${name}: events of ${id} are there twice`);
  }
  return lost;
}

/** Number of archived events. */
export async function countArchivedEvents(cluster: Cluster): Promise<number> {
  const [row] = await query<{ count: number }>(
    cluster,
    'select coalesce(sum(event_count), 0)::integer as count from event_segments',
  );
  return row?.count ?? 0;
}

/** Blobs by what points at them. */
export interface BlobReport {
  /** Referred to by a row but missing. */
  readonly missing: string[];
  /** Present without a row: the sweep would never find them. */
  readonly orphans: string[];
  /** Present with a row that nothing refers to: the sweep will delete them. */
  readonly released: string[];
  /** Rows of blobs that nothing refers to. */
  readonly idleRows: number;
  readonly unfinishedUploads: number;
}

export async function inspectBlobs(cluster: Cluster): Promise<BlobReport> {
  const store = await openStore(cluster);
  const listRows = async (): Promise<Set<string>> =>
    new Set((await query<{ key: string }>(cluster, 'select key from blobs')).map(({ key }) => key));
  try {
    const rowsBefore = await listRows();
    const stored = new Set<string>();
    let after: string | undefined;
    do {
      const page = await store.list('checkpoints/', after);
      for (const { key } of page.blobs) stored.add(key);
      after = page.next ?? undefined;
    } while (after !== undefined);
    const referred = new Set(
      (
        await query<{ key: string }>(
          cluster,
          `select blob_key as key from checkpoints where blob_key is not null
           union select blob_key from journal_snapshots where blob_key is not null
           union select blob_key from event_segments where blob_key is not null
           union select blob_key from version_chunks where blob_key is not null`,
        )
      ).map(({ key }) => key),
    );
    const rows = await listRows();
    // An object swept since the listing started was deleted before its row.
    for (const key of [...stored].filter((each) => rowsBefore.has(each) && !rows.has(each))) {
      if ((await store.stat(key)) === null) stored.delete(key);
    }
    const unreferred = [...stored].filter((key) => !referred.has(key));
    return {
      missing: [...referred].filter((key) => !stored.has(key)),
      orphans: unreferred.filter((key) => !rows.has(key)),
      released: unreferred.filter((key) => rows.has(key)),
      idleRows: [...rows].filter((key) => !referred.has(key)).length,
      unfinishedUploads: await countUploads(cluster),
    };
  } finally {
    await store.close();
  }
}

/** A busy machine may run nothing for seconds. */
const patientLimits = { ...parseConfig({}).database, connectTimeoutMs: 60_000, acquireTimeoutMs: 60_000 };

/** Runs a whole reconciling round, as `holdfast admin reconcile` does. */
export async function reconcileBlobs(cluster: Cluster): Promise<ReconcileCounts> {
  const store = await openStore(cluster);
  const db = await openDatabase({ ...patientLimits, url: cluster.databaseUrl, poolSize: 2 });
  try {
    const parts = { blobs: store, blobRows: createBlobRepository(db), logger: createLogger({ level: 'silent' }) };
    const begun = await beginReconcile(parts, { adoptAll: true });
    return (await reconcile(parts, begun, { objectsPerSecond: 1_000_000 })).counts;
  } finally {
    await db.close();
    await store.close();
  }
}

/** MinIO does not list uploads from before it was killed: it removes them itself, after a day. */
async function countUploads({ s3Access }: Cluster): Promise<number> {
  const { accessKeyId, bucket, endpoint, region, secretAccessKey } = s3Access;
  const client = new S3Client({
    endpoint,
    region,
    forcePathStyle: true,
    credentials: { accessKeyId, secretAccessKey },
  });
  try {
    const { Uploads = [] } = await client.send(new ListMultipartUploadsCommand({ Bucket: bucket }));
    return Uploads.length;
  } finally {
    client.destroy();
  }
}

function openStore({ s3Access }: Cluster): Promise<BlobStore> {
  return openBlobStore({ kind: 's3', ...s3Access, forcePathStyle: true, requestTimeoutMs: 60_000 });
}

export async function query<R extends pg.QueryResultRow>(
  cluster: Pick<Cluster, 'databaseUrl'>,
  text: string,
  values: readonly unknown[] = [],
): Promise<R[]> {
  const client = new pg.Client({ connectionString: cluster.databaseUrl });
  // A server that is killed after the response must not end the test: a query that it interrupts fails by itself.
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query<R>(text, [...values])).rows;
  } finally {
    await client.end();
  }
}
