import { readFile } from 'node:fs/promises';
import { expect, test } from '@jest/globals';
import { ScriptedStack } from '../testkit/scripted-runs.ts';
import { scenarioTimeoutMs, suite } from '../testkit/suite.ts';
import { fileWebServer } from '../testkit/web-server.ts';
import { findFlaws, signIn } from '../testkit/web-session.ts';

const bucketType = 'aws:s3/bucketV2:BucketV2';

await suite('a failed run in the web UI', { ownServer: true, tools: ['chromium'] }, () => {
  const web = fileWebServer();

  test(
    'its cause, what it changes and the last success are on its page; each line of its messages has an address',
    async () => {
      const { browser, server } = await web();
      const stack = await ScriptedStack.create(server, { project: 'failing' });
      const worked = await stack.start({
        environment: { 'git.head': 'a'.repeat(40), 'git.headName': 'refs/heads/main' },
      });
      const bucket = { urn: stack.urn(bucketType, 'logs'), type: bucketType, custom: true, id: 'l' };
      const provider = (version: string) => {
        const type = 'pulumi:providers:aws';
        const urn = stack.urn(type, `default_${version.replaceAll('.', '_')}`);
        return { urn, type, custom: true, id: version, inputs: { version }, outputs: { version } };
      };
      await worked.save([provider('6.1.0'), bucket]);
      await worked.complete();
      const failed = await stack.start({
        environment: { 'git.head': 'b'.repeat(40), 'git.headName': 'refs/heads/next' },
      });
      await failed.save([provider('6.2.0'), bucket]);
      const { urn } = bucket;
      const state = (acl: string) => ({ type: bucketType, urn, custom: true, inputs: { acl }, outputs: {} });
      const metadata = {
        ...{ op: 'update', urn, type: bucketType, diffs: ['acl'] },
        old: state('private'),
        new: state('public'),
      };
      const said = (sequence: number, message: string, more: object = {}) => ({
        ...{ sequence, timestamp: 1_780_000_000 + sequence },
        diagnosticEvent: { message, severity: 'info', color: 'raw', ...more },
      });
      await failed.send([
        said(0, `${Array.from({ length: 120 }, (_, at) => `line ${at + 1} of the program`).join('\n')}\n`),
        { sequence: 1, timestamp: 1_780_000_001, resourcePreEvent: { metadata } },
        said(2, 'AccessDenied: no public buckets\nrequest 7', { urn, severity: 'error' }),
        { sequence: 3, timestamp: 1_780_000_003, resOpFailedEvent: { metadata, status: 1, steps: 0 } },
      ]);
      await failed.complete('failed');

      await browser.context.grantPermissions(['clipboard-read', 'clipboard-write']);
      const { page, refused } = await signIn(browser, server.url, 'ada');
      const path = `${server.url}/${server.organization}/failing/dev`;
      await page.goto(`${path}/updates/2`);
      const errors = page.getByRole('region', { name: 'Errors' });
      await errors.getByText('AccessDenied').waitFor();
      // The properties that the failed step changes.
      await errors.getByText('public').first().waitFor();
      await errors.getByText('Last success:').waitFor();
      await errors.getByText('aaaaaaaa').waitFor();
      await errors.getByText('bbbbbbbb').waitFor();
      await errors.getByText('next', { exact: true }).waitFor();
      // A default provider of another version is another resource.
      const changed = errors.getByRole('list', { name: 'Changed since the last success' }).getByRole('listitem');
      expect(await changed.filter({ hasText: 'Provider aws' }).count()).toBe(0);
      await errors.getByRole('button', { name: 'Compare provider versions' }).click();
      await changed.filter({ hasText: 'Provider aws 6.1.0 → 6.2.0' }).waitFor();
      const compare = errors.getByRole('link', { name: 'Compare resources' });
      expect(await compare.getAttribute('href')).toMatch(/tab=versions&from=1&to=2/);
      expect(await findFlaws(page)).toEqual([]);
      await page.setViewportSize({ width: 390, height: 844 });
      expect(await findFlaws(page)).toEqual([]);
      await page.setViewportSize({ width: 1280, height: 720 });
      await errors.getByRole('button', { name: 'Copy as Markdown' }).click();
      await errors.getByRole('button', { name: 'Copied' }).waitFor();
      expect(await page.evaluate('navigator.clipboard.readText()')).toMatch(
        /^\[Update 2 of .*\/failing\/dev\]\(http.*- Last success: Update 1, aaaa.*```text\nAccessDenied: no public buckets\nrequest 7\n```$/s,
      );
      await page.evaluate(
        'navigator.clipboard.writeText = () => Promise.reject(new Error("refused")), document.execCommand = () => false, 0',
      );
      await errors.getByRole('button', { name: 'Copy as Markdown' }).click();
      await errors.getByText('The browser does not permit copying').waitFor();

      await errors.getByRole('link', { name: 'View in messages: logs' }).click();
      const current = page.locator('#content [aria-current="true"]');
      await current.getByText('AccessDenied').waitFor();
      await page.getByLabel('Search in messages').fill('line 11');
      await page.getByText('11 lines', { exact: true }).waitFor();
      await page.getByRole('button', { name: 'Next match' }).click();
      await current.getByText('line 11 of').waitFor();
      await page.getByLabel('Search in messages').press('Enter');
      await page.getByText('2 of 11 lines').waitFor();
      await page.getByRole('button', { name: 'Previous match' }).click();
      await page.getByRole('button', { name: 'Previous match' }).click();
      await current.getByText('line 119 of').waitFor();
      expect(new URL(page.url()).searchParams.get('line')).toBe('0-119');
      await page.reload();
      await current.getByText('line 119 of').waitFor();
      expect(
        await page.evaluate(`document.getElementById('line-0-119').getBoundingClientRect().top < innerHeight`),
      ).toBe(true);
      await page.getByLabel('Wrap lines').uncheck();
      await page.waitForURL((to) => to.searchParams.get('wrap') === '0');
      const download = page.waitForEvent('download');
      await page.getByRole('button', { name: 'Download' }).click();
      expect(await readFile(await (await download).path(), 'utf8')).toContain(`error ${urn}\nAccessDenied: no public`);
      expect(await findFlaws(page)).toEqual([]);
      expect(refused).toEqual([]);
      await page.close();
    },
    scenarioTimeoutMs,
  );
});
