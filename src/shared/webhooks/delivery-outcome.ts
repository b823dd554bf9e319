import type { IncomingHttpHeaders } from 'node:http';
import { isAccepted, type Posted } from '../platform/outgoing/post.ts';
import { isAlreadySet } from './commit-status.ts';
import type { AttemptRecord, ClaimedDelivery } from './delivery-repository.ts';

/** After failed attempts. The sum is about a day. */
const pausesSeconds = [5, 30, 120, 600, 1_800, 3_600, 7_200, 14_400, 21_600, 28_800];
/** A fraction of a pause is random, so that retries do not coincide after an outage. */
const pauseSpread = 0.2;
export const maxPauseSeconds = Math.ceil(Math.max(...pausesSeconds) * (1 + pauseSpread));
const hidden = new Set(['authorization', 'private-token']);
const maxLoggedChars = 4_096;

export interface Message {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Tells whether the attempt is the last one, and the pause before the next. */
export function outcomeOf(
  { attempts, format, isManual }: ClaimedDelivery,
  message: Message | null,
  posted: Posted,
  durationMs: number | null,
): AttemptRecord {
  const isTaken = isAccepted(posted) || ('status' in posted && isAlreadySet(format, posted.status, posted.body));
  const pause = pausesSeconds[attempts - 1];
  // 410 Gone means that the receiver wants no more attempts.
  const isLast = isManual || pause === undefined || ('status' in posted && posted.status === 410);
  return {
    state: isTaken ? 'delivered' : isLast ? 'failed' : 'waiting',
    pauseSeconds: (pause ?? 0) * (1 + pauseSpread * (2 * Math.random() - 1)),
    durationMs,
    requestUrl: message?.url ?? null,
    requestHeaders: message && linesOf(message.headers),
    responseStatus: 'status' in posted ? posted.status : null,
    responseHeaders: 'status' in posted ? linesOf(posted.headers) : null,
    responseBody: storable('status' in posted ? posted.body : posted.reason),
  };
}

/** For a delivery that is not sent. */
export function leftOut(reason: string): AttemptRecord {
  return {
    state: 'left-out',
    pauseSeconds: 0,
    durationMs: null,
    requestUrl: null,
    requestHeaders: null,
    responseStatus: null,
    responseHeaders: null,
    responseBody: reason,
  };
}

function linesOf(headers: Readonly<Record<string, string>> | IncomingHttpHeaders): string {
  return storable(
    Object.entries(headers)
      .filter(([name]) => !hidden.has(name) && name !== 'set-cookie')
      .map(([name, value]) => `${name}: ${String(value)}`)
      .join('\n'),
  );
}

function storable(text: string): string {
  return text.slice(0, maxLoggedChars).toWellFormed().replaceAll('\0', '�');
}
