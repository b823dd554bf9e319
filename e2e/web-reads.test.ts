import { beforeAll, expect, test } from '@jest/globals';
import type { Page, Route } from 'playwright-core';
import type { OwnHoldfastServer } from '../testkit/holdfast-server.ts';
import { ScriptedStack } from '../testkit/scripted-runs.ts';
import { scenarioTimeoutMs, suite } from '../testkit/suite.ts';
import { until } from '../testkit/until.ts';
import { fileWebServer } from '../testkit/web-server.ts';
import { findFlaws, signIn } from '../testkit/web-session.ts';

const bucketType = 'aws:s3/bucketV2:BucketV2';
const pageCount = 12;

await suite('reads of the web UI that fail, are slow, or are many', { ownServer: true, tools: ['chromium'] }, () => {
  const web = fileWebServer();
  let server: OwnHoldfastServer;
  let page: Page;
  let refused: string[];

  beforeAll(async () => {
    const { browser, server: own } = await web();
    server = own;
    await ScriptedStack.create(server, { project: 'app-prod' });
    const stack = await ScriptedStack.create(server, { project: 'app' });
    const run = await stack.start();
    const root = { urn: stack.urn('pulumi:pulumi:Stack', 'app-dev'), type: 'pulumi:pulumi:Stack' };
    await run.save([root, { urn: stack.urn(bucketType, 'logs'), type: bucketType, custom: true, id: 'l' }]);
    await run.complete('failed');
    ({ page, refused } = await signIn(browser, server.url, 'ada'));
  }, scenarioTimeoutMs);

  const open = (path: string) => page.goto(`${server.url}/${server.organization}${path}`);
  const main = () => page.getByRole('main');
  const dialog = () => page.getByRole('dialog');
  const answersAgain = () => page.unrouteAll({ behavior: 'ignoreErrors' });

  /** Answers calls of these procedures; `answer` gets the answer of the server. */
  const replace = (procedures: readonly string[], answer: (was: object, input: unknown) => object) =>
    page.route('**/trpc/**', async (route: Route) => {
      const url = new URL(route.request().url());
      const names = url.pathname.replace('/trpc/', '').split(',');
      if (!names.some((name) => procedures.includes(name))) return route.fallback();
      const inputs = JSON.parse(url.searchParams.get('input') ?? '{}') as Record<string, unknown>;
      const answers = (await (await route.fetch()).json()) as object[];
      const json = answers.map((was, at) => (procedures.includes(names[at] ?? '') ? answer(was, inputs[at]) : was));
      await route.fulfill({ status: 207, json });
    });
  const no = { error: { message: 'Not for now', code: -32_600, data: { code: 'BAD_REQUEST', httpStatus: 400 } } };

  test(
    'a part of a page that cannot be read says so',
    async () => {
      const parts = {
        '/app/dev': ['updates.events', 'references.ofStack'],
        [`/app/dev?tab=resources&urn=${encodeURIComponent(`urn:pulumi:dev::app::${bucketType}::logs`)}`]: [
          'resources.history',
        ],
        '/app/dev/updates/1?view=details': ['updates.statistics'],
        '/~/members': ['members.invitations'],
        '/~/policies?group=default-policy-group': ['policies.group'],
      };
      for (const [path, procedures] of Object.entries(parts)) {
        await replace(procedures, () => no);
        await open(path);
        const notes = main().getByRole('alert').filter({ hasText: 'Not for now' });
        await until(async () => (await notes.count()) === procedures.length, `${path} says what cannot be read`);
        if (procedures.includes('updates.events')) expect(await page.getByText('reported no message').count()).toBe(0);
        expect(await findFlaws(page)).toEqual([]);
        await answersAgain();
        for (let left = procedures.length; left > 0; left--) {
          await notes.first().getByRole('button', { name: 'Try again' }).click();
          await until(async () => (await notes.count()) < left, `${path} is read`);
        }
      }
    },
    scenarioTimeoutMs,
  );

  test(
    'a resource that is deleted while it is open is not shown any longer, and the page keeps its title',
    async () => {
      await open(`/app/dev?tab=resources&urn=${encodeURIComponent(`urn:pulumi:dev::app::${bucketType}::logs`)}`);
      const heading = (name: string) => main().getByRole('heading', { name, exact: true });
      const identifier = main().getByText('URN', { exact: true });
      await identifier.waitFor();
      const title = await page.title();
      expect(title).toContain('app/dev');
      const gone = { message: 'No such resource', code: -32_004, data: { code: 'NOT_FOUND', httpStatus: 404 } };
      await replace(['resources.get'], () => ({ error: gone }));
      // A read that began before the deletion may still replace the one that the event would begin.
      await until(
        async () => {
          await page.evaluate("dispatchEvent(new Event('visibilitychange'))");
          return (await main().getByText('No such resource').isVisible()) && (await heading('History').isVisible());
        },
        'the page shows that the resource is deleted',
        { everyMs: 500 },
      );
      await identifier.waitFor({ state: 'detached' });
      expect(await page.title()).toBe(title);
      expect(await findFlaws(page)).toEqual([]);
      await answersAgain();
    },
    scenarioTimeoutMs,
  );

  test(
    'a filter keeps the order of what is typed in the middle of it',
    async () => {
      for (const [path, field] of [
        ['/app/dev?tab=resources', 'Filter resources by name'],
        ['/app/dev/updates/1?view=events', 'Search in events'],
      ] as const) {
        await open(path);
        const filter = page.getByLabel(field);
        await filter.fill('prd');
        await filter.press('ArrowLeft');
        await filter.press('ArrowLeft');
        await page.keyboard.type('xyz');
        expect(await filter.inputValue()).toBe('pxyzrd');
        await page.waitForURL((to) => to.searchParams.get('text') === 'pxyzrd');
        await page.goBack();
      }
    },
    scenarioTimeoutMs,
  );

  test(
    'a webhook for some events is for none at first, and never for all without saying so',
    async () => {
      await open('/~/webhooks');
      await page.getByRole('button', { name: 'Add a webhook' }).click();
      await dialog().getByLabel('Name').fill('Chat');
      await dialog().getByLabel('URL').fill('https://chat.example.com/');
      const add = dialog().getByRole('button', { name: 'Add the webhook' });
      expect(await add.isEnabled()).toBe(true);
      const events = dialog().getByLabel('Events', { exact: true });
      await events.selectOption('some');
      await dialog().getByLabel('stack created').waitFor();
      expect(await add.isEnabled()).toBe(false);
      await dialog().getByLabel('stack created').check();
      await add.click();
      await dialog().waitFor({ state: 'detached' });

      await page.getByRole('button', { name: 'Edit' }).click();
      const save = dialog().getByRole('button', { name: 'Save' });
      await dialog().getByLabel('stack created').uncheck();
      expect(await events.inputValue()).toBe('some');
      expect(await save.isEnabled()).toBe(false);
      await dialog().getByLabel('stack deleted').check();
      await save.click();
      await dialog().waitFor({ state: 'detached' });
      await main().getByText('stack deleted', { exact: true }).waitFor();
    },
    scenarioTimeoutMs,
  );

  test(
    'every pack and version can be enabled, with the configuration that the pack has by then',
    async () => {
      const published = (number: number) => ({
        version: number,
        tag: `1.${number}.0`,
        publishedAt: '2026-01-01T00:00:00Z',
      });
      const versions = Array.from({ length: 20 }, (_, at) => published(30 - at));
      const packOf = (name: string) => ({ name, displayName: name, versionCount: 30, versions, groups: [] });
      await replace(['policies.packs'], (_, input) => {
        const isSecond = 'cursor' in (input as object);
        const items = [packOf(isSecond ? 'zones' : 'costs')];
        return { result: { data: { items, next: isSecond ? null : 'second' } } };
      });
      await open('/~/policies?group=default-policy-group');
      await main().getByRole('button', { name: 'Show more packs' }).click();
      await main().getByLabel('Pack', { exact: true }).selectOption('zones');
      const version = main().getByLabel('Version', { exact: true });
      expect(await findFlaws(page)).toEqual([]);
      for (const [typed, tag] of [
        ['', '1.30.0'],
        ['1.2.0', '1.2.0'],
      ] as const) {
        await version.fill(typed);
        const sent = page.waitForRequest(/policies\.changeGroup/);
        await main().getByRole('button', { name: 'Enable', exact: true }).click();
        const body = JSON.parse((await sent).postData() ?? '') as Record<string, unknown>;
        expect(body['0'] ?? body).toMatchObject({ enable: { pack: 'zones', tag } });
        expect(JSON.stringify(body)).not.toContain('config');
        await main().getByRole('alert').filter({ hasText: 'zones' }).waitFor();
      }
      await answersAgain();
    },
    scenarioTimeoutMs,
  );

  test(
    'Enter in the palette goes to a result of what was typed, not of what was typed before',
    async () => {
      await open('');
      await main().getByRole('link', { name: 'app/dev' }).first().waitFor();
      await page.keyboard.press('Control+k');
      const option = (name: string) => page.getByRole('option', { name: `${server.organization}/${name}` });
      await page.getByRole('combobox', { name: 'Stack, page or command' }).and(page.locator(':focus')).waitFor();
      await page.keyboard.type('app');
      await option('app/dev').and(page.locator('[aria-selected=true]')).waitFor();
      const { promise: isDue, resolve: answer } = Promise.withResolvers<void>();
      const asked = page.waitForRequest((request) => decodeURIComponent(request.url()).includes('"app-prod"'));
      await page.route(/stacks\.list/, async (route) => {
        await isDue;
        await route.continue();
      });
      await page.keyboard.type('-prod');
      await asked;
      await page.keyboard.press('Enter');
      answer();
      await page.waitForURL((to) => !to.pathname.endsWith(server.organization));
      expect(new URL(page.url()).pathname).toBe(`/${server.organization}/app-prod/dev`);
      await answersAgain();
    },
    scenarioTimeoutMs,
  );

  test(
    'a value that only a newer server knows is shown as it is',
    async () => {
      await replace(['limits.get'], (was) => {
        const { data } = (was as { result: { data: { items: object[] } } }).result;
        return { result: { data: { ...data, items: [...data.items, { name: 'gpus', limit: 4, used: 1 }] } } };
      });
      await open('/~/limits');
      await main().getByText('gpus').waitFor();
      await answersAgain();
    },
    scenarioTimeoutMs,
  );

  test(
    'a list of many pages is not read again as a whole when somebody comes back to it',
    async () => {
      let asked = 0;
      await replace(['teams.list'], (_, input) => {
        asked += 1;
        const { cursor } = input as { cursor?: string };
        const number = cursor === undefined ? 1 : Number(cursor);
        const name = `team-${number}`;
        const items = [
          { name, displayName: name, description: '', members: 0, isAdmin: false, isIn: false, isManaged: false },
        ];
        return { result: { data: { items, next: number === pageCount ? null : String(number + 1) } } };
      });
      await open('/~/teams');
      for (let number = 1; number < pageCount; number++) {
        await page.getByRole('link', { name: `team-${number}`, exact: true }).waitFor();
        await page.getByRole('button', { name: 'Show more' }).click();
      }
      await page.getByRole('link', { name: `team-${pageCount}`, exact: true }).waitFor();
      asked = 0;
      const read = page.waitForResponse(/me\.get/);
      await page.evaluate("dispatchEvent(new Event('visibilitychange'))");
      await read;
      // Each page would be asked for after the answer for the one before it.
      await page.evaluate(
        "fetch('/trpc/teams.list?batch=1&input=%7B%220%22%3A%7B%22organization%22%3A%22dev-org%22%7D%7D')",
      );
      expect(asked).toBeLessThanOrEqual(1);
      await answersAgain();
      expect(refused).toEqual([]);
    },
    scenarioTimeoutMs,
  );
});
