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
/** After this many organizations with failed batches, the receiver is considered unavailable. */
const maxRefused = 3;
/** Statuses by which the receiver refuses everything, not one batch. */
const refusesAll = new Set([401, 403, 404, 405, 408, 429]);

/** The receiver of events. */
export interface AuditReceiver {
  readonly url: string;
  /** Sent as a bearer token; null: none. */
  readonly token: string | null;
  readonly format: AuditFormat;
  /** Calls to the receiver, which may be in the operator's own network: see receiverCalls. */
  readonly outgoing: Outgoing;
}

/** Calls with the rules of the server, plus the receiver's host, which the operator has configured. */
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
 * Posts the events of chained batches, one request for each batch, in the order of each organization's chain. A batch counts as sent once
 * the receiver has answered 2xx; until then it is sent again, after growing pauses, under the same id: of its organization, or of all if the
 * receiver seems to be unavailable. Returns how many were sent.
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
  /** Organizations whose next batch was refused: the others go on. */
  const refused = new Set<string>();
  for (let isComplete = false; !(isComplete || signal.aborted); ) {
    const batches = await exports.listUnexported('receiver', { except: [...refused], limit: batchesAtOnce });
    for (const batch of batches) {
      const { organizationId, sendFailures } = batch;
      if (refused.has(organizationId)) continue;
      const posted = await sendBatch(db, batch, receiver, signal);
      if (signal.aborted && !isAccepted(posted)) return sent;
      if (isAccepted(posted)) {
        await exports.noteExported('receiver', organizationId, batch.batch);
        sent++;
        continue;
      }
      logger.warn(
        { batch: batchId(batch), ...('status' in posted ? { status: posted.status } : posted) },
        'audit events were not accepted',
      );
      refused.add(organizationId);
      const isAnswer = 'status' in posted && !refusesAll.has(posted.status);
      if (isAnswer) await exports.noteRefused(organizationId, sendFailures + 1, pauseAfter(sendFailures));
      if (!isAnswer || (posted.status >= 500 && refused.size >= maxRefused)) {
        await sending.noteFailure(failures + 1, pauseAfter(failures));
        return sent;
      }
    }
    isComplete = batches.length < batchesAtOnce;
  }
  await sending.noteSuccess();
  return sent;
}

/** In seconds. */
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
  // Retention may have dropped them.
  if (events.length === 0) return { status: 204, headers: {}, body: '' };
  const headers = {
    'content-type': contentTypes[format],
    'user-agent': `holdfast/${holdfastVersion}`,
    'idempotency-key': batchId(batch),
    ...(token === null ? {} : { authorization: `Bearer ${token}` }),
  };
  return post(outgoing, url, { headers, body: batchText(format, events, holdfastVersion), timeoutMs, signal });
}

/** The same for each attempt. With the hash, because the numbers begin again after a restore of an older database. */
function batchId({ batch, hash, organizationId }: UnexportedRow): string {
  return `${organizationId}-${batch}-${hash.toString('hex').slice(0, 16)}`;
}
