import type { Static } from 'typebox';
import { Type } from 'typebox';
import { Nullable } from '../../shared/platform/schema/standard-schema.ts';

const Text = Type.String();
const Part = Type.Object({ isUp: Type.Boolean(), latencyMs: Nullable(Type.Number()) });

/** The part of an installation that `holdfast top` shows: members of the responses of the operator's procedures. */
export const Installation = Type.Object({
  parts: Type.Object({ database: Part, blobs: Part, queue: Nullable(Part) }),
  processes: Type.Array(
    Type.Object({
      role: Text,
      host: Text,
      pid: Type.Integer(),
      version: Text,
      isLate: Type.Boolean(),
      /** CPU usage as a share of one core. */
      cpu: Type.Number(),
      rssBytes: Type.Number(),
      /** The longest time that the event loop was blocked, in ms. */
      loopMs: Type.Number(),
    }),
  ),
  queues: Type.Array(
    Type.Object({
      name: Text,
      active: Type.Integer(),
      waiting: Type.Integer(),
      failed: Type.Integer(),
      oldestWaitingMs: Type.Number(),
      workers: Nullable(Type.Integer()),
    }),
  ),
  updates: Type.Array(
    Type.Object({
      updateId: Text,
      organization: Text,
      project: Text,
      stack: Text,
      kind: Text,
      by: Nullable(Text),
      since: Text,
      isExpired: Type.Boolean(),
      /** Number of calls that wait for the stack. */
      waiting: Type.Integer(),
    }),
  ),
  hasMoreUpdates: Type.Boolean(),
  slow: Type.Array(
    Type.Object({
      updateId: Text,
      organization: Text,
      project: Text,
      stack: Text,
      kind: Text,
      status: Text,
      lastedMs: Type.Number(),
      endedAt: Text,
    }),
  ),
});
export type Installation = Static<typeof Installation>;
type Part = Static<typeof Part>;

const maxSlow = 5;
/** Minimum number of updates and processes to show. */
const minShown = 3;

/** Draws an installation for a terminal of this size. */
export function drawInstallation(
  installation: Installation,
  { at, origin, columns, rows }: { at: Date; origin: string; columns: number; rows: number },
): string {
  const { parts, processes, queues, slow, updates, hasMoreUpdates } = installation;
  const head = [
    `Holdfast ${origin}  ${at.toISOString().slice(11, 19)} UTC`,
    [
      partText('Postgres', parts.database),
      partText('blobs', parts.blobs),
      parts.queue && partText('Redis', parts.queue),
    ]
      .filter((part) => part !== null)
      .join('   '),
    '',
  ];
  // Besides its rows, the table of updates has a head, a line for the rest and a line before it.
  const sizes = [head.length, queues.length + 2, Math.min(slow.length, maxSlow) + 2, minShown + 3];
  const room = Math.max(minShown, rows - sizes.reduce((total, size) => total + size) - 3);
  const shownProcesses =
    processes.length > room
      ? processes.toSorted((one, other) => Number(other.isLate) - Number(one.isLate)).slice(0, room)
      : processes;
  const hiddenProcesses = processes.length - shownProcesses.length;
  const processTable = tableOf(
    ['PROCESS', 'HOST', 'PID', 'VERSION', 'CPU', 'MEMORY', 'BLOCKED', ''],
    shownProcesses.map(({ cpu, host, isLate, loopMs, pid, role, rssBytes, version }) => [
      ...[role, host, String(pid), version, `${Math.round(cpu * 100)} %`, `${Math.round(rssBytes / 1e6)} MB`],
      ...[`${Math.round(loopMs)} ms`, isLate ? 'NOT HEARD OF' : ''],
    ]),
  );
  if (hiddenProcesses > 0) processTable.push(`… ${hiddenProcesses} more`);
  const queueTable = tableOf(
    ['QUEUE', 'RUNNING', 'WAITING', 'OLDEST', 'FAILED', 'WORKERS'],
    queues.map(({ active, failed, name, oldestWaitingMs, waiting, workers }) => [
      ...[name, String(active), String(waiting), waiting === 0 ? '-' : ageText(oldestWaitingMs), String(failed)],
      workers === null ? 'in the server' : String(workers),
    ]),
  );
  const slowTable = tableOf(
    ['SLOWEST UPDATES OF 7 DAYS', 'KIND', 'TOOK', 'RESULT'],
    slow.slice(0, maxSlow).map((update) => [nameOf(update), update.kind, ageText(update.lastedMs), update.status]),
  );
  const around = [...head, ...processTable, '', ...queueTable, '', ...slowTable].length;
  const shown = updates.slice(0, Math.max(minShown, rows - around - 4));
  const hidden = updates.length - shown.length;
  const updateTable = tableOf(
    [`RUNNING UPDATES (${updates.length}${hasMoreUpdates ? '+' : ''})`, 'KIND', 'FOR', 'BY', 'WAITING', ''],
    shown.map((update) => [
      ...[nameOf(update), update.kind, ageText(at.getTime() - Date.parse(update.since)), update.by ?? '-'],
      ...[String(update.waiting), update.isExpired ? 'EXPIRED' : ''],
    ]),
  );
  const more = hidden > 0 || hasMoreUpdates ? [`… ${hasMoreUpdates ? 'more' : `${hidden} more`}`] : [];
  return [...head, ...processTable, '', ...queueTable, '', ...updateTable, ...more, '', ...slowTable]
    .slice(0, rows)
    .map((line) => line.slice(0, columns).trimEnd())
    .join('\n');
}

function partText(name: string, { isUp, latencyMs }: Part): string {
  return isUp && latencyMs !== null ? `${name} ${latencyMs.toFixed(1)} ms` : `${name} DOES NOT ANSWER`;
}

function nameOf({ organization, project, stack }: { organization: string; project: string; stack: string }): string {
  return `${organization}/${project}/${stack}`;
}

function ageText(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Columns as wide as their longest cell. */
function tableOf(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const lines = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...lines.map((line) => (line[column] ?? '').length)));
  return lines.map((line) => line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  '));
}
