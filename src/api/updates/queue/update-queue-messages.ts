import type { HolderRow } from '../../../shared/updates/update-queue-repository.ts';

/** `waited`: the call's last position, if it has waited. */
export function describeHolder(
  holder: HolderRow | null,
  waited: { readonly position: number; readonly waitedSeconds: number } | null,
): string {
  const parts = [];
  if (holder) {
    const since = holder.createdAt.toISOString().replace(/\.\d+Z$/, 'Z');
    const link = linkOf(holder.ciRun);
    parts.push(`${nameHolder(holder)} has held the stack since ${since}${link ? ` (${link})` : ''}.`);
  }
  if (waited)
    parts.push(
      `This one gave up after ${describeSeconds(waited.waitedSeconds)}, at position ${waited.position} of the queue.`,
    );
  parts.push('Wait until it ends, or end it with `pulumi cancel`');
  return parts.join(' ');
}

export function describeWait(
  stack: string,
  waitedSeconds: number,
  { behind, state = 'another update held' }: { readonly behind: number; readonly state: string | undefined },
): string {
  const others = behind === 0 ? '' : `; ${behind} more ${behind === 1 ? 'waits' : 'wait'} for it`;
  return `Waited ${describeSeconds(waitedSeconds)} for ${stack}, which ${state}${others}`;
}

function describeSeconds(seconds: number): string {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

function nameHolder({ kind, login, tokenName }: HolderRow): string {
  if (login !== null) return `${login}'s ${kind}`;
  const article = kind === 'update' || kind === 'import' ? 'An' : 'A';
  return `${article} ${kind} by ${tokenName === null ? 'a token' : `the token ${tokenName}`}`;
}

function linkOf(ciRun: string | null): string | null {
  if (ciRun === null) return null;
  const url = (JSON.parse(ciRun) as Readonly<Record<string, unknown>>)['build.url'];
  return typeof url === 'string' && isTerminalLink(url) ? url : null;
}

export function isTerminalLink(url: string): boolean {
  return /^https?:\/\/[\x21-\x7e]+$/.test(url);
}
