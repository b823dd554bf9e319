import { execFile } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { ensureToolchain } from '../../testkit/toolchain/toolchain.ts';
import { describeWithTools } from '../support/tools.ts';

const root = path.join(import.meta.dirname, '../..');
const read = (name: string): string => readFileSync(path.join(root, name), 'utf8');
const file = path.join(root, 'deploy/monitoring/alerts.yml');

interface Rule {
  /** Missing for rules that record. */
  readonly alert?: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly runbook_url: string };
}
const rules = (parse(readFileSync(file, 'utf8')) as { groups: { rules: Rule[] }[] }).groups.flatMap(
  (group) => group.rules,
);
const alerts = rules.filter((rule): rule is Rule & { alert: string } => rule.alert !== undefined);

test('each alert leads to its own section of the runbook', () => {
  const headings = new Set([...read('docs/runbook.md').matchAll(/^### (\w+)$/gm)].map(([, name]) => name));
  expect(alerts.length).toBeGreaterThan(20);
  expect(new Set(alerts.map(({ alert }) => alert))).toEqual(headings);
  for (const { alert, annotations, labels } of alerts) {
    expect(annotations).toEqual({
      summary: expect.stringMatching(/^[A-Z].*\.$/),
      runbook_url: `docs/runbook.md#${alert.toLowerCase()}`,
    });
    expect(labels.severity).toMatch(/^(page|warn)$/);
  }
});

test('rules ask only for metrics that processes have', () => {
  const sources = globSync('src/**/*.ts', { cwd: root })
    .filter((name) => !name.endsWith('.test.ts'))
    .map(read)
    .join('\n');
  const named = new Set(rules.flatMap(({ expr }) => expr.match(/holdfast_\w+/g) ?? []));
  expect(named.size).toBeGreaterThan(20);
  const isThere = (name: string): boolean => sources.includes(`'${name.replace(/_(bucket|count|sum)$/, '')}'`);
  expect([...named].filter((name) => !isThere(name))).toEqual([]);
  // A name of a scrape job is the operator's choice.
  expect(rules.filter(({ expr }) => /\bjob[=!]|\bup\b/.test(expr))).toEqual([]);
});

interface Series {
  readonly labels: Readonly<Record<string, string>>;
  /** One value a minute. */
  readonly values: readonly number[];
}

interface Sample {
  readonly name: string;
  readonly labels: Series['labels'];
  readonly at: (minute: number) => number;
  /** The last minute with a value; not given: there is no end. */
  readonly until?: number;
}

const hour = 60;
const day = 24 * hour;

/** A gauge with the same value for as long as a case lasts. */
const gauge = (name: string, value: number, labels: Series['labels'] = {}): Sample => ({
  ...{ name, labels, at: () => value },
});
/** A counter that grows. */
const counter = (name: string, perMinute: number, labels: Series['labels'] = {}): Sample => ({
  ...{ name, labels, at: (minute) => minute * perMinute },
});
/** A counter that grows by one every so many minutes. */
const step = (name: string, everyMinutes: number, labels: Series['labels'] = {}): Sample => ({
  ...{ name, labels, at: (minute) => Math.floor(minute / everyMinutes) },
});

const requests = (status: string, perMinute: number, route = '/', instance = 'api', method = 'GET'): Sample =>
  counter('holdfast_http_request_seconds_count', perMinute, { status, method, route, instance });
const lease = '/api/stacks/:organization/:project/:stack/:kind/:updateId/renew_lease';
const working = [
  gauge('holdfast_build_info', 1, { role: 'api', instance: 'api' }),
  gauge('holdfast_build_info', 1, { role: 'worker', instance: 'worker' }),
];

/** For each alert: what fires it, what is just right, and after how many minutes. */
const faults: Readonly<
  Record<
    string,
    { faulty: readonly Sample[]; right: readonly Sample[]; at?: number; also?: string[]; still?: string[] }
  >
> = {
  HoldfastErrorBudgetBurns: {
    faulty: [requests('200', 600, lease), requests('503', 10, lease)],
    right: [requests('200', 600, lease), requests('503', 3, lease)],
    at: 70,
    // At half the rate, too.
    also: ['HoldfastErrorBudgetShrinks'],
    still: ['HoldfastErrorBudgetShrinks'],
  },
  HoldfastErrorBudgetShrinks: {
    faulty: [requests('200', 600, lease), requests('503', 2, lease)],
    right: [requests('200', 600, lease), requests('503', 0.5, lease)],
    at: 3 * hour,
  },
  HoldfastErrors: {
    faulty: [requests('200', 100), requests('503', 3)],
    right: [requests('200', 100), requests('503', 1)],
  },
  HoldfastCommitsSlow: {
    faulty: [
      ['0.25', 90],
      ['0.5', 100],
      ['+Inf', 100],
    ].map(([le, count]) =>
      counter('holdfast_commit_seconds_bucket', Number(count), { kind: 'journal', le: String(le) }),
    ),
    right: [
      ['0.1', 90],
      ['0.25', 100],
      ['+Inf', 100],
    ].map(([le, count]) =>
      counter('holdfast_commit_seconds_bucket', Number(count), { kind: 'journal', le: String(le) }),
    ),
    at: 20,
  },
  HoldfastJobsWaiting: above('holdfast_jobs_oldest_waiting_seconds', 30),
  HoldfastJobsGivenUp: {
    // The first failure of a process.
    faulty: [step('holdfast_jobs_ended_total', 8, { outcome: 'failed' })],
    right: [counter('holdfast_jobs_ended_total', 1, { outcome: 'committed' })],
  },
  HoldfastRedisDown: {
    faulty: [gauge('holdfast_redis_up', 0), gauge('holdfast_redis_up', 1, { instance: 'api' })],
    right: [gauge('holdfast_redis_up', 1)],
  },
  HoldfastRedisFull: {
    faulty: [
      ...[gauge('holdfast_redis_memory_bytes', 86), gauge('holdfast_redis_memory_limit_bytes', 100)],
      // Of another site.
      gauge('holdfast_redis_memory_bytes', 1, { instance: 'api' }),
      gauge('holdfast_redis_memory_limit_bytes', 400, { instance: 'api' }),
    ],
    right: [
      ...[gauge('holdfast_redis_memory_bytes', 86), gauge('holdfast_redis_memory_limit_bytes', 0)],
      // Of another site.
      gauge('holdfast_redis_memory_bytes', 1, { instance: 'api' }),
      gauge('holdfast_redis_memory_limit_bytes', 80, { instance: 'api' }),
    ],
  },
  HoldfastBlobStoreErrors: {
    faulty: [counter('holdfast_blob_errors_total', 7)],
    right: [counter('holdfast_blob_errors_total', 5)],
  },
  HoldfastBlobStoreSlow: {
    faulty: slowPuts('10'),
    right: slowPuts('5'),
    at: 20,
  },
  HoldfastDatabaseUnreachable: {
    faulty: [gauge('holdfast_database_up', 0), gauge('holdfast_database_up', 1, { instance: 'api' })],
    right: [gauge('holdfast_database_up', 1)],
  },
  HoldfastPoolExhausted: above('holdfast_database_waiting', 10),
  HoldfastLeasesExpire: {
    faulty: ['a', 'b'].map((instance) => counter('holdfast_leases_expired_total', 0.25, { instance })),
    right: [counter('holdfast_leases_expired_total', 0.3)],
    at: hour,
  },
  HoldfastEventsNotArchived: above('holdfast_event_archiving_updates', 10_000, { queue: 'recent' }, hour),
  HoldfastAuditNotChained: above('holdfast_audit_waiting_seconds', 3600, { step: 'chain' }),
  HoldfastAuditNotSent: above('holdfast_audit_waiting_seconds', 3600, { step: 'send' }),
  HoldfastWebhooksWaiting: above('holdfast_webhook_oldest_due_seconds', 600),
  HoldfastJournalInvalid: above('holdfast_stacks_with_journal_errors', 0, { reason: 'invalid-entry' }),
  HoldfastJournalUnknownKind: above('holdfast_stacks_with_journal_errors', 0, { reason: 'unknown-kind' }),
  HoldfastJournalGap: above('holdfast_stacks_with_journal_errors', 0, { reason: 'missing-entries' }),
  HoldfastDocumentsDamaged: above('holdfast_documents_damaged', 0),
  HoldfastScrubBehind: above('holdfast_documents_oldest_check_age_seconds', 45 * 86_400, {}, day),
  HoldfastBlobsMissing: above('holdfast_blobs_missing', 0),
  HoldfastBlobsUnknown: above('holdfast_blobs_unknown', 0),
  HoldfastNotTakenOver: {
    faulty: [counter('holdfast_blob_sweeps_refused_total', 1)],
    right: [counter('holdfast_blob_sweeps_refused_total', 0), gauge('holdfast_outgoing_paused', 0)],
    at: 20,
  },
  HoldfastReadOnly: above('holdfast_read_only', 0, { instance: 'api' }, 5 * hour),
  HoldfastSiteReplaced: above('holdfast_site_fenced', 0),
  HoldfastSecondStoreBehind: above('holdfast_second_store_lag_seconds', 60),
  HoldfastItemsPostponed: {
    faulty: [step('holdfast_task_postponed_total', hour, { name: 'scrub' })],
    // Once.
    right: [step('holdfast_task_postponed_total', 100, { name: 'scrub' })],
    at: 190,
  },
  HoldfastTasksFail: above('holdfast_task_failing', 0, { name: 'scrub' }, 20),
  HoldfastCertificateExpires: {
    // Their clock begins in 1970.
    faulty: [gauge('holdfast_tls_certificate_expiry_seconds', 7 * 86_400)],
    right: [gauge('holdfast_tls_certificate_expiry_seconds', 8 * 86_400)],
    at: 2 * hour,
  },
  HoldfastBackupOld: above('holdfast_backup_overdue_seconds', 86_400, {}, hour),
  HoldfastBundleBehind: above('holdfast_bundle_lag_seconds', 60),
  HoldfastBackupUnverified: above('holdfast_backup_last_verified_age_seconds', 8 * 86_400, {}, hour),
};

/** Writes to the blob store, a fifth of which take as long as this bucket says. */
function slowPuts(le: string): Sample[] {
  const counts: readonly [string, number][] = [
    ['2.5', 80],
    [le, 100],
    ['+Inf', 100],
  ];
  return counts.map(([at, count]) => counter('holdfast_blob_seconds_bucket', count, { op: 'put', le: at }));
}

function above(name: string, limit: number, labels: Series['labels'] = {}, at = 10) {
  return { faulty: [gauge(name, limit + 1, labels)], right: [gauge(name, limit, labels)], at };
}

await describeWithTools('alerts, as Prometheus evaluates them', ['config-checks'], () => {
  interface Case {
    readonly samples: readonly Sample[];
    /** The minute at which the alerts are looked at. */
    readonly at: number;
  }

  /** Returns the alerts that fire in each case. */
  async function firing(...cases: readonly Case[]): Promise<string[][]> {
    const { 'config-checks': checks } = await ensureToolchain({ only: ['config-checks'] });
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const child = execFile(checks, ['alerts', file], (error, stdout) => (error ? reject(error) : resolve(stdout)));
    const series = ({ at, samples }: Case): Series[] =>
      samples.map(({ labels, name, at: valueAt, until = at }) => ({
        labels: { __name__: name, ...labels },
        values: Array.from({ length: until + 1 }, (_, minute) => valueAt(minute)),
      }));
    child.stdin?.end(JSON.stringify(cases.map((each) => ({ series: series(each), at: each.at }))));
    return JSON.parse(await promise) as string[][];
  }

  test('each fires at its fault, and is silent below its threshold', async () => {
    const rows = Object.entries(faults);
    const fired = await firing(
      ...rows.flatMap(([, { at = 10, faulty, right }]) => [
        { samples: [...working, ...faulty], at },
        { samples: [...working, ...right], at },
      ]),
    );
    const expected = rows.flatMap(([name, { also = [], still = [] }]) => [[name, ...also], still]);
    expect(
      Object.fromEntries(fired.map((each, at) => [`${rows[at >> 1]?.[0]} ${at % 2 ? 'right' : 'faulty'}`, each])),
    ).toEqual(
      Object.fromEntries(expected.map((each, at) => [`${rows[at >> 1]?.[0]} ${at % 2 ? 'right' : 'faulty'}`, each])),
    );
    // Processes that are missing are the two that have tests of their own.
    expect([...Object.keys(faults), 'HoldfastDown', 'HoldfastNoWorker'].sort()).toEqual(
      alerts.map(({ alert }) => alert).sort(),
    );
  });

  const role = (name: string): Sample =>
    gauge('holdfast_build_info', 1, { job: 'kubernetes-pods', role: name, version: '0.1.0', instance: name });

  test.each([
    ['a server', ['server']],
    ['a cluster', ['api', 'worker']],
  ])('are silent for %s that works, whatever the name of the scrape job', async (_, roles) => {
    expect(await firing({ samples: roles.map((name) => role(name)), at: 10 })).toEqual([[]]);
  });

  test.each([
    ['no process answers', [], ['HoldfastDown']],
    ['no API replica answers', ['worker'], ['HoldfastDown']],
    ['no worker answers', ['api'], ['HoldfastNoWorker']],
  ])('say that %s', async (_, roles, expected) => {
    expect(await firing({ samples: roles.map((name) => role(name)), at: 10 })).toEqual([expected]);
  });

  test('do not count refusals of a read-only installation as faults, but count what it still does', async () => {
    const create = '/api/stacks/:organization/:project/:stack/:kind';
    const refusals = [...working, requests('200', 600, lease), requests('503', 60, create, 'api', 'POST')];
    const failing = [...working, requests('200', 600, lease), requests('503', 60, lease)];
    // For less than hours.
    const readOnly = {
      ...gauge('holdfast_read_only', 1, { instance: 'api' }),
      at: (minute: number) => Math.sign(minute),
    };
    const cases = [refusals, [...refusals, readOnly], [...failing, readOnly]];
    expect(await firing(...cases.map((samples) => ({ samples, at: 70 })))).toEqual([
      ['HoldfastErrors'],
      [],
      ['HoldfastErrorBudgetBurns', 'HoldfastErrorBudgetShrinks', 'HoldfastErrors'],
    ]);
  });

  test('say that the audit log is not sent also if it is not exported', async () => {
    const waiting = gauge('holdfast_audit_waiting_seconds', 9_000, { step: 'export' });
    expect(await firing({ samples: [...working, waiting], at: 70 })).toEqual([['HoldfastAuditNotSent']]);
  });

  test('say that another database owns the store also of one that was restored and sends nothing yet', async () => {
    const paused = gauge('holdfast_outgoing_paused', 1);
    expect(await firing({ samples: [...working, paused], at: 20 })).toEqual([['HoldfastNotTakenOver']]);
  });

  test('say that workers no longer make backups', async () => {
    const made = { ...gauge('holdfast_backup_overdue_seconds', 0), until: 20 };
    const fired = await firing(
      { samples: [...working, { ...made, until: 140 }], at: 140 },
      { samples: [...working, made], at: 140 },
    );
    expect(fired).toEqual([[], ['HoldfastBackupOld']]);
    // A number below zero stands for none, as processes of a replaced site have.
    const old = { ...gauge('holdfast_backup_overdue_seconds', 0, { instance: 'old' }) };
    const replaced = { ...old, at: (minute: number) => (minute > 20 ? -1 : 0) };
    expect(await firing({ samples: [...working, replaced], at: 140 })).toEqual([['HoldfastBackupOld']]);
  });

  test('count failing calls among those of users, without the probes of proxies', async () => {
    const probes = ['/healthz', '/readyz'].flatMap((route) => [
      requests('200', 180, route),
      requests('503', 60, route),
    ]);
    const [quiet, failing] = await firing(
      { samples: [...working, ...probes, requests('200', 100)], at: 20 },
      { samples: [...working, ...probes, requests('200', 20), requests('503', 2)], at: 20 },
    );
    expect([quiet, failing]).toEqual([[], ['HoldfastErrors']]);
  });

  const fenced = (instance: string): Sample => gauge('holdfast_site_fenced', 1, { instance });

  test('say what fails at one site, whatever the other one does', async () => {
    const others = [
      ...['holdfast_read_only', 'holdfast_site_fenced'].map((name) => gauge(name, 1, { instance: 'old' })),
      requests('503', 60, lease, 'old'),
    ];
    const failing = [requests('200', 600, lease), requests('503', 60, lease)];
    const [errors, none] = await firing(
      { samples: [...working, ...others, ...failing], at: 70 },
      { samples: [...working, ...others, requests('200', 600, lease)], at: 70 },
    );
    const replaced = 'HoldfastSiteReplaced';
    expect(errors).toEqual(['HoldfastErrorBudgetBurns', 'HoldfastErrorBudgetShrinks', 'HoldfastErrors', replaced]);
    expect(none).toEqual([replaced]);
  });

  test('do not take a site that was replaced for one that answers', async () => {
    const at = (role: string, instance: string): Sample => gauge('holdfast_build_info', 1, { role, instance });
    const replaced = ['old-api', 'old-worker'].flatMap((instance) => [
      at(instance.slice(4), instance),
      fenced(instance),
    ]);
    const [down, noWorker] = await firing(
      { samples: replaced, at: 10 },
      { samples: [...replaced, at('api', 'api')], at: 10 },
    );
    expect(down).toEqual(['HoldfastDown', 'HoldfastSiteReplaced']);
    expect(noWorker).toEqual(['HoldfastNoWorker', 'HoldfastSiteReplaced']);
  });

  test('say of a site that was replaced only that, and not what it may no longer do', async () => {
    const waiting = [
      gauge('holdfast_audit_waiting_seconds', 9_000, { step: 'chain', instance: 'old' }),
      gauge('holdfast_audit_waiting_seconds', 9_000, { step: 'send', instance: 'old' }),
      gauge('holdfast_audit_waiting_seconds', 9_000, { step: 'export', instance: 'old' }),
      gauge('holdfast_bundle_lag_seconds', 9_000, { instance: 'old' }),
      gauge('holdfast_task_failing', 1, { name: 'scrub', instance: 'old' }),
      gauge('holdfast_webhook_oldest_due_seconds', 9_000, { instance: 'old' }),
      gauge('holdfast_stacks_with_journal_errors', 1, { reason: 'invalid-entry', instance: 'old' }),
      gauge('holdfast_stacks_with_journal_errors', 1, { reason: 'unknown-kind', instance: 'old' }),
      gauge('holdfast_stacks_with_journal_errors', 1, { reason: 'missing-entries', instance: 'old' }),
      gauge('holdfast_documents_damaged', 1, { instance: 'old' }),
      gauge('holdfast_blobs_missing', 1, { instance: 'old' }),
      gauge('holdfast_blobs_unknown', 1, { instance: 'old' }),
      gauge('holdfast_event_archiving_updates', 20_000, { queue: 'recent', instance: 'old' }),
      gauge('holdfast_second_store_lag_seconds', 9_000, { instance: 'old' }),
    ];
    const [replaced, writing] = await firing(
      { samples: [...working, ...waiting, fenced('old')], at: 90 },
      { samples: [...working, ...waiting, fenced('other')], at: 90 },
    );
    expect(replaced).toEqual(['HoldfastSiteReplaced']);
    expect(writing).toHaveLength(14);
  });

  test('notice a task that runs every six hours and postpones the same item each time', async () => {
    const sweep = step('holdfast_task_postponed_total', 6 * hour, { name: 'scrub' });
    expect(await firing({ samples: [...working, sweep], at: 14 * hour })).toEqual([['HoldfastItemsPostponed']]);
  });

  test('page nobody after a few errors among few calls', async () => {
    const few = [...working, requests('200', 0.2, lease), requests('503', 0.05, lease)];
    expect(await firing({ samples: few, at: 90 })).toEqual([['HoldfastErrorBudgetShrinks']]);
  });

  test('say that the blob store fails also where few calls use it', async () => {
    const errors = counter('holdfast_blob_errors_total', 2, { op: 'put', error: 'refused' });
    const reads = counter('holdfast_blob_seconds_count', 20, { op: 'check' });
    const [failing, fine] = await firing(
      ...[2, 20].map((perMinute) => ({
        samples: [...working, errors, reads, counter('holdfast_blob_seconds_count', perMinute, { op: 'put' })],
        at: 30,
      })),
    );
    expect([failing, fine]).toEqual([['HoldfastBlobStoreErrors'], []]);
  });
});
