import { type AuditFormat, batchText, contentTypes } from '../../shared/audit/audit-formats.ts';
import { createAuditListRepository } from '../../shared/audit/audit-list-repository.ts';
import { createAuditSendingRepository } from '../../shared/audit/audit-sending-repository.ts';
import type { AppContext } from '../../shared/context.ts';
import { holdfastVersion } from '../../shared/platform/config/config.ts';
import type { AllowList } from '../../shared/platform/outgoing/address-rules.ts';
import { Outgoing } from '../../shared/platform/outgoing/outgoing.ts';
import { isAccepted, type Posted, post } from '../../shared/platform/outgoing/post.ts';
import { createAuditExportRepository, maxPauseSeconds, type UnexportedRow } from './audit-export-repository.ts';

const batchesAtOnce = 50;
const timeoutMs = 30_000;
const firstPauseSeconds = 30;
/** The receiver is considered unavailable if it accepted nothing and refused the first batches of this many organizations. */
const maxRefused = 3;
/** Statuses with which the receiver refuses everything, not one batch. */
const refusesAll = new Set([401, 403, 404, 405, 408, 429]);

export interface AuditReceiver {
  readonly url: string;
  /** A bearer token; null for none. */
  readonly token: string | null;
  readonly format: AuditFormat;
  /** For the receiver, which may be in the operator's own network; see receiverCalls. */
  readonly outgoing: Outgoing;
}

/** Adds the receiver's host, which the operator has configured, to the rules of the server. */
export function receiverCalls(url: string, { hosts, networks, plainOrigins }: AllowList): Outgoing {
  const { hostname, origin, protocol } = new URL(url);
  return new Outgoing({
    allow: {
      networks,
      hosts: new Set([...hosts, hostname.toLowerCase()]),
      plainOrigins: protocol === 'http:' ? new Set([...plainOrigins, origin]) : plainOrigins,
    },
  });
}

/**
 * Posts one request per batch, in the order of each organization's chain. A batch counts as sent once the receiver has responded with 2xx;
 * until then it is sent again under the same id, after growing pauses. A pause applies to the batch's organization, or to all of them if
 * the receiver seems to be unavailable.
 */
export async function sendAudit(
  { db, logger }: Pick<AppContext, 'db' | 'logger'>,
  receiver: AuditReceiver,
  signal: AbortSignal,
): Promise<number> {
  const sending = createAuditSendingRepository(db);
  const exports = createAuditExportRepository(db);
  const { failures, isDue } = await sending.readPause(maxPauseSeconds);
  if (!isDue) return 0;
  let sent = 0;
  /** Organizations whose next batch was refused. */
  const refused = new Set<string>();
  /** Organizations with an accepted batch. The listed failures were before it. */
  const accepted = new Set<string>();
  let newlyRefused = 0;
  for await (const batch of listUnsent(exports, refused)) {
    if (signal.aborted) return sent;
    const { organizationId } = batch;
    const posted = await sendBatch(db, batch, receiver, signal);
    if (signal.aborted && !isAccepted(posted)) return sent;
    if (isAccepted(posted)) {
      await exports.noteExported('receiver', organizationId, batch.batch);
      accepted.add(organizationId);
      sent++;
      continue;
    }
    logger.warn(
      { batch: batchId(batch), ...('status' in posted ? { status: posted.status } : posted) },
      'audit events were not accepted',
    );
    refused.add(organizationId);
    const isAnswer = 'status' in posted && !refusesAll.has(posted.status);
    const earlier = accepted.has(organizationId) ? 0 : batch.sendFailures;
    if (isAnswer) await exports.noteRefused(organizationId, earlier + 1, pauseAfter(earlier));
    if (earlier === 0) newlyRefused++;
    if (!isAnswer || (posted.status >= 500 && sent === 0 && newlyRefused >= maxRefused)) {
      const before = sent > 0 ? 0 : failures;
      await sending.noteFailure(before + 1, pauseAfter(before));
      return sent;
    }
  }
  await sending.noteSuccess();
  return sent;
}

/**
 * Lists batches in rounds of all organizations. Organizations with a refused batch come last, so that they do not delay the others. Skips
 * organizations that are added to `refused` meanwhile.
 */
async function* listUnsent(
  { listUnexported }: ReturnType<typeof createAuditExportRepository>,
  refused: ReadonlySet<string>,
): AsyncGenerator<UnexportedRow> {
  const list = (wasRefused: boolean, after: string | null) =>
    listUnexported('receiver', { after, except: [...refused], limit: batchesAtOnce, wasRefused });
  let after: string | null = null;
  for (;;) {
    let batches: readonly UnexportedRow[] = await list(false, after);
    if (batches.length === 0 && after === null) batches = await list(true, null);
    if (batches.length === 0 && after === null) return;
    after = batches.length < batchesAtOnce ? null : (batches.at(-1)?.organizationId ?? null);
    for (const batch of batches) if (!refused.has(batch.organizationId)) yield batch;
  }
}

/** Returns the pause in seconds. */
function pauseAfter(failures: number): number {
  return Math.min(firstPauseSeconds * 2 ** Math.min(failures, 20), maxPauseSeconds);
}

async function sendBatch(
  db: AppContext['db'],
  batch: UnexportedRow,
  { format, outgoing, token, url }: AuditReceiver,
  signal: AbortSignal,
): Promise<Posted> {
  const events = await createAuditListRepository(db).listBatch(batch);
  // Retention may have dropped the events.
  if (events.length === 0) return { status: 204, headers: {}, body: '' };
  const headers = {
    'content-type': contentTypes[format],
    'user-agent': `holdfast/${holdfastVersion}`,
    'idempotency-key': batchId(batch),
    ...(token === null ? {} : { authorization: `Bearer ${token}` }),
  };
  return post(outgoing, url, { headers, body: batchText(format, events, holdfastVersion), timeoutMs, signal });
}

/** The same for each attempt. Contains the hash, because numbers restart after a restore of an older database. */
function batchId({ batch, hash, organizationId }: UnexportedRow): string {
  return `${organizationId}-${batch}-${hash.toString('hex').slice(0, 16)}`;
}
