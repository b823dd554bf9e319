import { hash } from 'node:crypto';
import type { JobView, QueueOverview, QueueView } from '../../shared/jobs/job-queue-view.ts';

const reloadSeconds = 5;

const style = `
body { font: 14px/1.4 system-ui, sans-serif; margin: 2rem auto; max-width: 80rem; padding: 0 1rem; color: #1c2330; background: #fff; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; padding: .25rem .6rem .25rem 0; border-bottom: 1px solid #d8dde6; vertical-align: top; }
th { font-weight: 600; } code { font-size: 12px; } .failed { color: #b3261e; } .quiet { color: #5b6475; }
@media (prefers-color-scheme: dark) { body { color: #e4e8f0; background: #14181f; } th, td { border-color: #333b49; } .failed { color: #ff8a80; } .quiet { color: #99a3b5; } }`;

/** Named in the page's Content-Security-Policy. */
export const queueStyleSha256 = hash('sha256', style, 'base64');

/** The page reloads itself, and has no scripts or external resources. */
export function renderQueuePage({ redis, queues }: QueueOverview, now: Date): string {
  const memory = `${mebibytes(redis.memoryBytes)}${redis.memoryLimitBytes > 0 ? ` of ${mebibytes(redis.memoryLimitBytes)}` : ''}`;
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta http-equiv="refresh" content="${reloadSeconds}"><title>Queues - Holdfast</title><style>${style}</style></head>
<body>
<h1>Queues</h1>
<p>Redis: ${redis.up ? `answers in ${redis.roundTripMs.toFixed(1)} ms, holds ${memory}` : '<span class="failed">down</span>'}. As of ${escapeHtml(now.toISOString())}, reloaded every ${reloadSeconds} s.</p>
${queues.map((queue) => renderQueue(queue, now)).join('\n')}
</body>
</html>
`;
}

function renderQueue(queue: QueueView, now: Date): string {
  const workers = queue.workers === 0 ? '<span class="failed">no worker</span>' : `${queue.workers} workers`;
  const rows = queue.jobs.map((job) => renderJob(job, now)).join('\n');
  const table =
    queue.jobs.length === 0
      ? '<p class="quiet">No jobs.</p>'
      : `<table><thead><tr><th>State</th><th>Job</th><th>Id</th><th>Update</th><th>Added</th><th>Took</th><th>Attempts</th><th>Fault</th></tr></thead><tbody>
${rows}
</tbody></table>`;
  return `<section>
<h2>Queue ${escapeHtml(queue.name)}</h2>
<p>${workers}; ${queue.waiting} waiting, the oldest for ${seconds(queue.oldestWaitingMs)}; ${queue.active} running; ${queue.failed} failed.</p>
${table}
</section>`;
}

function renderJob(job: JobView, now: Date): string {
  const took = job.startedAt ? seconds((job.endedAt ?? now).getTime() - job.startedAt.getTime()) : '';
  const attempts = job.stalls > 0 ? `${job.attempts} (stalled ${job.stalls})` : String(job.attempts);
  const cells = [
    escapeHtml(job.state),
    escapeHtml(job.name),
    `<code>${escapeHtml(job.id)}</code>`,
    `<code>${escapeHtml(job.updateId ?? '')}</code>`,
    `<time>${escapeHtml(job.addedAt?.toISOString() ?? '')}</time>`,
    took,
    attempts,
    escapeHtml(job.fault ?? ''),
  ];
  return `<tr${job.state === 'failed' ? ' class="failed"' : ''}>${cells.map((cell) => `<td>${cell}</td>`).join('')}</tr>`;
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

function mebibytes(bytes: number): string {
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
