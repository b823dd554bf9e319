import { beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { callApiOk } from '../testkit/api-call.ts';
import type { TestBrowser } from '../testkit/chromium.ts';
import type { OwnHoldfastServer } from '../testkit/holdfast-server.ts';
import { type ScriptedRun, ScriptedStack } from '../testkit/scripted-runs.ts';
import { scenarioTimeoutMs, suite } from '../testkit/suite.ts';
import { tuned } from '../testkit/tuned.ts';
import { until } from '../testkit/until.ts';
import { fileWebServer } from '../testkit/web-server.ts';
import { countClicks, enter, findBarriers, findFlaws, signIn } from '../testkit/web-session.ts';

const bucketType = 'aws:s3/bucketV2:BucketV2';
const commit = 'c0ffee0123456789c0ffee0123456789c0ffee01';
const environment = {
  ...{ 'git.head': commit, 'git.headName': 'refs/heads/release', 'vcs.kind': 'github.com' },
  ...{ 'vcs.owner': 'acme', 'vcs.repo': 'shop', 'ci.build.url': 'https://ci.example/7' },
};

await suite('what pages say about runs', { ownServer: true, tools: ['chromium'] }, () => {
  const web = fileWebServer({ reviewer: true, settings: tuned({ sweepSeconds: 1, eventArchiveDelaySeconds: 0 }) });
  let server: OwnHoldfastServer;
  let browser: TestBrowser;
  let page: Page;

  beforeAll(async () => {
    ({ browser, server } = await web());
    ({ page } = await signIn(browser, server.url, 'ada'));
  }, scenarioTimeoutMs);

  const root = (stack: ScriptedStack) => ({
    urn: stack.urn('pulumi:pulumi:Stack', `${stack.project}-dev`),
    ...{ custom: false, type: 'pulumi:pulumi:Stack' },
  });
  const provider = (stack: ScriptedStack, version: string) => ({
    urn: stack.urn('pulumi:providers:aws', 'p'),
    ...{ custom: true, id: 'p1', type: 'pulumi:providers:aws', inputs: { version }, outputs: { version } },
  });
  const bucket = (stack: ScriptedStack, name: string, inputs: object, more: object = {}) => ({
    urn: stack.urn(bucketType, name),
    ...{ custom: true, id: `id-${name}`, type: bucketType, inputs, outputs: inputs },
    ...{ parent: root(stack).urn, provider: `${provider(stack, '').urn}::p1`, ...more },
  });
  const state = (stack: ScriptedStack, version: string, ...buckets: object[]) => [
    ...[root(stack), provider(stack, version), ...buckets],
  ];
  const open = (path: string) => page.goto(`${server.url}/${path}`);
  const pathOf = ({ organization, project, stack }: ScriptedStack) => `${organization}/${project}/${stack}`;
  const ended = async (run: ScriptedRun, resources: readonly object[]) => {
    await run.save(resources);
    await run.complete();
  };

  test(
    'while an update runs, each property names the version, commit, person and CI run that set it',
    async () => {
      const stack = await ScriptedStack.create(server, { project: 'blame' });
      await ended(await stack.start({ environment }), state(stack, '6.1.0', bucket(stack, 'b', { a: 1, c: 1 })));
      await ended(await stack.start(), state(stack, '6.1.0', bucket(stack, 'b', { a: 1, c: 2 })));
      const run = await stack.start();
      await run.save(state(stack, '6.1.0', bucket(stack, 'b', { a: 1, c: 2, d: 1 })));
      const urn = encodeURIComponent(stack.urn(bucketType, 'b'));
      const inputs = page.getByRole('list', { name: 'Inputs' }).getByRole('listitem');
      const note = async (name: string) =>
        (await inputs.filter({ hasText: new RegExp(`^${name}`) }).innerText()).trim();
      const seen = async () => {
        await open(`${pathOf(stack)}?tab=resources&blame=1&urn=${urn}`);
        await inputs
          .getByText(/version|known|beginning/)
          .first()
          .waitFor();
        return note('a');
      };
      // The versions from before the index are recorded some seconds later.
      await until(async () => /version 1\b(?! or)/.test(await seen()), 'the version that set it is known', {
        everyMs: 1_000,
      });
      expect(await note('a')).toMatch(/version 1[\s\S]*c0ffee01[\s\S]*ada[\s\S]*CI/);
      expect(await note('c')).toMatch(/version 2[\s\S]*ada/);
      expect(await note('d')).toMatch(/version 3[\s\S]*ada/);
      await page.getByText('An update is running: these are the resources of version 3 so far.').waitFor();
      await run.complete();
    },
    scenarioTimeoutMs,
  );

  test(
    'the stacks that use an old version of a provider are named with their organization, and all are reached',
    async () => {
      for (const organization of ['acme', 'globex'])
        for (let at = 0; at < 8; at++) {
          const stack = await ScriptedStack.create(server, { organization, project: 'shop', stack: `s${at}` });
          await ended(await stack.start(), state(stack, '5.9.0', bucket(stack, 'b', { at })));
        }
      const groups = page.getByRole('region', { name: 'Groups' }).getByRole('listitem');
      await until(
        async () => {
          await open(`~/search?q=${encodeURIComponent('provider:aws version:<6')}&by=stack`);
          const more = page.getByRole('link', { name: '4 more' });
          return more.waitFor({ timeout: 20_000 }).then(
            () => true,
            () => false,
          );
        },
        'all are indexed',
        { everyMs: 1_000 },
      );
      await groups.getByText('acme/shop/s0').waitFor();
      expect(await groups.count()).toBe(12);
      await page.getByRole('link', { name: '4 more' }).click();
      await until(async () => (await groups.count()) === 16, 'all are listed');
      const names = (await groups.allInnerTexts()).map((text) => text.split('\n')[0]);
      expect(new Set(names).size).toBe(16);
      expect(await findFlaws(page)).toEqual([]);
    },
    scenarioTimeoutMs,
  );

  /** Two steps that wait for one another, and a long one beside them, with times in seconds. */
  const eventsOf = (stack: ScriptedStack, steps: readonly (readonly [string, number, number])[], begins: number) =>
    steps
      .flatMap(([name, from, to]) => {
        const inputs = { policy: '{"Version":"2012-10-17","Sid":"new"}', name };
        const metadata = {
          ...{ op: 'update', urn: stack.urn(bucketType, name), type: bucketType, diffs: ['policy'], logical: true },
          ...{ old: { inputs: { ...inputs, policy: '{"Version":"2012-10-17","Sid":"old"}' } }, new: { inputs } },
        };
        return [
          { timestamp: begins + from, resourcePreEvent: { metadata } },
          { timestamp: begins + to, resOutputsEvent: { metadata } },
        ];
      })
      .sort((a, b) => a.timestamp - b.timestamp)
      .map((event, sequence) => ({ sequence, ...event }));

  test(
    'figures of one update are the same on all of its views, and values are shown as a difference',
    async () => {
      const stack = await ScriptedStack.create(server, { project: 'figures' });
      const run = await stack.start({ environment });
      const begins = Math.floor(Date.now() / 1000);
      await run.send(
        eventsOf(
          stack,
          [
            ['first', 0, 20],
            ['second', 20, 46],
            ['alone', 0, 20],
            // Ends just before the last one begins, and has nothing to do with it.
            ['near', 1, 21],
            ['last', 21, 55],
          ],
          begins,
        ),
      );
      await ended(
        run,
        state(
          stack,
          '6.1.0',
          ...['first', 'alone', 'near'].map((name) => bucket(stack, name, {})),
          bucket(stack, 'second', {}, { dependencies: [stack.urn(bucketType, 'first')] }),
          bucket(stack, 'last', {}),
        ),
      );
      const path = `${pathOf(stack)}/updates/1`;
      const figure = async (view: string) => {
        await open(`${path}?view=${view}`);
        const name = page.getByText('Critical path', { exact: true });
        await name.waitFor();
        return (await name.locator('xpath=following-sibling::*').first().innerText()).split('\n')[0]?.trim();
      };
      await until(async () => (await figure('timing')) !== 'known after the end', 'the server has the steps', {
        everyMs: 1_000,
      });
      expect(await figure('timing')).toBe('34 s');
      expect(await figure('details')).toMatch(/^34 s/);
      await page.getByText('Longest chain').waitFor({ state: 'detached' });

      await open(`${path}?values=1`);
      await page.getByText('policy.Sid').first().waitFor();
      expect(await page.locator('main').innerText()).not.toContain('\\"');
      expect(await page.getByRole('link', { name: 'c0ffee01' }).getAttribute('href')).toBe(
        `https://github.com/acme/shop/commit/${commit}`,
      );
      expect(await findFlaws(page)).toEqual([]);
      await page.getByRole('button', { name: 'policy' }).first().click();
      await open(`${pathOf(stack)}/previews/${run.updateId}`);
      await page.waitForURL(`${server.url}/${path}`);

      // What is usual is known after five updates that have succeeded.
      const often = await ScriptedStack.create(server, { project: 'often' });
      for (let at = 0; at < 6; at++) {
        const each = await often.start();
        await each.send(eventsOf(often, [['first', 0, 1]], begins));
        await ended(each, state(often, '6.1.0', bucket(often, 'first', { at })));
      }
      const usual = page.getByText(/took .*, usually [^,]+$/);
      await until(
        async () => {
          await open(`${pathOf(often)}/updates/6`);
          return usual.waitFor({ timeout: 20_000 }).then(
            () => true,
            () => false,
          );
        },
        'what is usual is beside the title',
        { everyMs: 1_000 },
      );
      expect(await usual.innerText()).not.toMatch(/usually .* and/);
      expect(await findFlaws(page)).toEqual([]);
      // A failure is not compared with successes, though the other view of its page knows what is usual.
      const failing = await often.start();
      await failing.send(eventsOf(often, [['first', 0, 1]], begins));
      await failing.complete('failed');
      await open(`${pathOf(often)}/updates/7?view=details`);
      await page.getByText(/^Compared with \d+ updates/).waitFor();
      expect(await page.getByText(/took .*, usually/).count()).toBe(0);
    },
    scenarioTimeoutMs,
  );

  test(
    'interrupted work is shown on the page of its update, and found by a filter; a lock names branch and commit',
    async () => {
      const stack = await ScriptedStack.create(server, { project: 'broken' });
      await ended(await stack.start(), state(stack, '6.1.0'));
      const run = await stack.start({ environment });
      const pending = { resource: bucket(stack, 'half', { a: 1 }), type: 'creating' };
      await run.save(state(stack, '6.1.0'), [pending]);
      await open(pathOf(stack));
      const notice = page.locator('section').filter({ hasText: 'holds the lock' }).first();
      await notice.getByText('release', { exact: true }).waitFor();
      await notice.getByText('c0ffee01').waitFor();
      await notice.getByRole('link', { name: 'CI run' }).waitFor();
      await run.cancel();
      await open(`${pathOf(stack)}/updates/2`);
      await page.getByText('1 operation was interrupted').waitFor();
      await page.getByText(/creating half/).waitFor();
      expect(await findFlaws(page)).toEqual([]);
      await page.getByRole('link', { name: 'Resolve' }).click();
      await page.getByRole('list', { name: 'Interrupted operations' }).waitFor();
      // What was typed stays when the session ends.
      await page.getByLabel('Decision about half').selectOption('import');
      const id = page.getByLabel('Id of half in the cloud');
      await id.fill('bucket-1');
      await browser.context.clearCookies();
      await page.evaluate("dispatchEvent(new Event('visibilitychange'))");
      const ending = page.getByRole('main').getByText('Your session has ended');
      await ending.waitFor();
      expect(await findFlaws(page)).toEqual([]);
      const [tab] = await Promise.all([
        browser.context.waitForEvent('page'),
        page.getByRole('main').getByRole('link', { name: 'Sign in' }).click(),
      ]);
      await enter(tab, server.url, 'ada');
      await tab.close();
      await page.evaluate("dispatchEvent(new Event('visibilitychange'))");
      await ending.waitFor({ state: 'detached' });
      expect(await id.inputValue()).toBe('bucket-1');
      await open(server.organization);
      await page.getByRole('link', { name: 'Interrupted' }).click();
      await page.getByRole('row').filter({ hasText: 'broken/dev' }).waitFor();
      await page.getByRole('row').filter({ hasText: 'figures/dev' }).waitFor({ state: 'detached' });
      expect(await findFlaws(page)).toEqual([]);
    },
    scenarioTimeoutMs,
  );

  test(
    'each everyday task takes few clicks from the list of stacks',
    async () => {
      const sizes = [1, 2] as const;
      const commits = ['a1'.repeat(20), 'b2'.repeat(20)] as const;
      const [prod, staging, busy] = [
        await ScriptedStack.create(server, { project: 'tasks', stack: 'prod' }),
        await ScriptedStack.create(server, { project: 'tasks', stack: 'staging' }),
        await ScriptedStack.create(server, { project: 'tasks', stack: 'busy' }),
      ];
      for (const [at, size] of sizes.entries()) {
        const run = await prod.start({ environment: { ...environment, 'git.head': commits[at] as string } });
        await ended(run, state(prod, '5.9.0', bucket(prod, 'logs', { size })));
      }
      const failing = await staging.start();
      await failing.save(state(staging, '6.1.0', bucket(staging, 'logs', { size: 1 })));
      const said = { message: 'AccessDenied: no buckets', severity: 'error', color: 'never' };
      const urn = staging.urn(bucketType, 'logs');
      await failing.send([{ sequence: 0, timestamp: 1_780_000_000, diagnosticEvent: { ...said, urn } }]);
      await failing.complete('failed');
      const running = await busy.start({ environment });
      const post = async (path: string, body: object, token = server.token): Promise<void> => {
        await callApiOk({ url: server.url, token }, 'POST', path, body);
      };
      const rule = { kind: 'change-limit', project: 'tasks', settings: { changes: 0 } };
      await post(`orgs/${server.organization}/update-rules`, rule);
      const request = { commit: commits[1], reason: 'The old pool goes' };
      await post(`stacks/${pathOf(prod)}/approvals`, request, server.reviewerToken);
      await post(`orgs/${server.organization}/tokens`, { name: 'deploy' });

      const visit = await browser.context.newPage();
      const clicks = await countClicks(visit);
      const link = (name: string) => visit.getByRole('link', { name, exact: true }).click();
      const button = (name: string | RegExp) => visit.getByRole('button', { name }).first().click();
      const history = visit.getByRole('listitem').filter({ hasText: 'size' });
      const tasks: readonly (readonly [task: string, atMost: number, steps: () => Promise<unknown>, from?: string])[] =
        [
          [
            ...(['who holds the lock, and from which CI run', 1] as const),
            async () => {
              await link('tasks/busy');
              const notice = visit.locator('section').filter({ hasText: 'holds the lock' }).first();
              await notice.getByText('ada').first().waitFor();
              expect(await notice.getByRole('link', { name: 'CI run' }).getAttribute('href')).toBe(
                'https://ci.example/7',
              );
            },
          ],
          [
            ...(['why it failed', 1] as const),
            async () => {
              await link('tasks/staging');
              await visit.getByText('AccessDenied: no buckets').waitFor();
            },
          ],
          [
            ...(['what changed, property by property', 2] as const),
            async () => {
              await link('tasks/prod');
              await link('Versions');
              await visit.getByText(/^inputs\.size/).waitFor();
            },
          ],
          [
            ...(['which commit set a property', 3] as const),
            async () => {
              await link('tasks/prod');
              await visit.getByRole('link', { name: /^Resources/ }).click();
              await button(/^logs/);
              await history.filter({ hasText: 'version 2' }).getByText('b2b2b2b2').waitFor();
            },
          ],
          [
            ...(['which stacks use a provider below a version', 2] as const),
            async () => {
              await visit.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Search' }).click();
              await visit.getByRole('heading', { level: 1, name: 'Search' }).waitFor();
              await visit.keyboard.press('/');
              await visit.keyboard.type('provider:aws version:<6');
              await visit.getByRole('navigation', { name: 'Group by' }).getByRole('link', { name: 'Stack' }).click();
              await visit.getByRole('region', { name: 'Groups' }).getByText('tasks/prod').waitFor();
            },
          ],
          [
            ...(['approve', 2] as const),
            async () => {
              await link('tasks/prod');
              await button('Approve');
              await visit.getByRole('dialog').getByLabel('Reason').fill('Seen');
              await visit.keyboard.press('Enter');
              await visit.getByText('The old pool goes', { exact: true }).waitFor({ state: 'detached' });
            },
          ],
          [
            ...(['compare staging with prod', 3] as const),
            async () => {
              await link('tasks/staging');
              await link('Versions');
              await button('Compare stacks');
              await visit.getByLabel('Compare with').and(visit.locator(':focus')).waitFor();
              await visit.keyboard.type('prod');
              await visit.keyboard.press('Enter');
              await visit.getByText(/^inputs\.size/).waitFor();
            },
          ],
          [
            ...(['restore an earlier version', 4] as const),
            async () => {
              await link('tasks/prod');
              await link('Versions');
              await visit.getByRole('region', { name: 'Versions' }).getByRole('button', { name: /^1/ }).click();
              await button('Restore version 1');
              await visit.getByLabel('Type prod to confirm').fill('prod');
              await visit.keyboard.press('Enter');
              await visit.getByRole('button', { name: /Restored version 1/ }).waitFor();
            },
          ],
          [
            ...(['rotate a token', 2] as const),
            async () => {
              await button('Rotate deploy');
              await visit.getByRole('dialog').getByRole('button', { name: 'Rotate the token' }).click();
              await visit.getByText('It is shown only once').waitFor();
            },
            `${server.organization}/~/tokens`,
          ],
        ];
      // The index follows some seconds behind.
      await until(
        async () => {
          await visit.goto(
            `${server.url}/${pathOf(prod)}?tab=resources&urn=${encodeURIComponent(prod.urn(bucketType, 'logs'))}`,
          );
          await visit.getByRole('heading', { name: 'Inputs' }).waitFor();
          return (await history.filter({ hasText: 'version 2' }).count()) > 0;
        },
        'all is indexed',
        { everyMs: 1_000 },
      );
      const taken: [string, number][] = [];
      for (const [task, , steps, from = `${server.organization}?text=tasks`] of tasks) {
        await visit.goto(`${server.url}/${from}`);
        await visit.getByRole('heading', { level: 1 }).waitFor();
        clicks.take();
        await steps();
        taken.push([task, clicks.take()]);
      }
      expect(taken).toEqual(tasks.map(([task, atMost]) => [task, atMost]));
      await visit.close();
      await running.complete();
    },
    scenarioTimeoutMs,
  );

  test(
    'on a phone, and for those who speak to their browser, everything has the name that is shown',
    async () => {
      await page.setViewportSize({ width: 390, height: 844 });
      for (const [path, shown] of [
        [server.organization, page.getByRole('row').filter({ hasText: 'figures/dev' })],
        [`${server.organization}/figures/dev`, page.getByRole('heading', { name: 'figures/dev' })],
        [`${server.organization}/figures/dev?tab=updates`, page.getByRole('link', { name: 'Update 1' })],
        [`${server.organization}/figures/dev?tab=versions`, page.getByRole('heading', { name: 'figures/dev' })],
        [`${server.organization}/figures/dev?tab=resources&shape=graph`, page.locator('[data-box]').first()],
        [`${server.organization}/figures/dev/updates/1`, page.getByRole('list', { name: 'Resources' })],
        [`${server.organization}/figures/dev/updates/1?view=timing`, page.getByText('All steps')],
        ['~/search?q=name:last', page.getByRole('link', { name: 'last' })],
        [`${server.organization}/~/references`, page.getByRole('heading', { name: 'References' })],
        [`${server.organization}/~/ci`, page.getByRole('heading').first()],
        [`${server.organization}/~/members`, page.getByRole('row').filter({ hasText: 'ada' })],
      ] as const) {
        await open(path);
        await shown.first().waitFor();
        await page.locator('[aria-busy="true"]').first().waitFor({ state: 'detached' });
        expect(await findBarriers(page, ['label-content-name-mismatch'])).toEqual([]);
      }
      await page.setViewportSize({ width: 1280, height: 720 });
    },
    scenarioTimeoutMs,
  );

  test(
    'the focus stays in the page after a navigation, and an outage is told within three seconds',
    async () => {
      const stack = await ScriptedStack.create(server, { project: 'focus' });
      await ended(await stack.start(), state(stack, '6.1.0'));
      await open(server.organization);
      const row = page.getByRole('link', { name: 'focus/dev' });
      await row.focus();
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { name: 'focus/dev' }).waitFor();
      await until(async () => (await focused()) === 'content', 'the content has the focus');
      await open(server.organization);
      await row.waitFor();
      for (const path of [
        server.organization,
        `${server.organization}/focus/dev`,
        `${server.organization}/~/members`,
      ]) {
        await open(path);
        await page.getByRole('heading', { level: 1 }).waitFor();
        await page.locator('[aria-busy="true"]').first().waitFor({ state: 'detached' });
        await server.kill();
        const stoppedAt = Date.now();
        await page.getByText('The server does not answer').waitFor();
        expect(Date.now() - stoppedAt).toBeLessThan(3_000);
        await server.restart();
        await page.getByText('The server does not answer').waitFor({ state: 'detached' });
      }
    },
    scenarioTimeoutMs,
  );

  const focused = () => page.evaluate('document.activeElement?.id ?? ""');
});
