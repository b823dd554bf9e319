import { expect, test } from '@jest/globals';
import { runAdmin } from '../testkit/admin-command.ts';
import { startChromium } from '../testkit/chromium.ts';
import { startOwnHoldfast } from '../testkit/holdfast-server.ts';
import { fileServer, scenarioTimeoutMs, suite } from '../testkit/suite.ts';
import { buildWeb } from '../testkit/web-build.ts';
import { findBarriers } from '../testkit/web-session.ts';

await suite('the first minutes of a server', { ownServer: true, tools: ['pulumi-3.276', 'chromium'] }, () => {
  const server = fileServer(async () => {
    await buildWeb();
    return startOwnHoldfast();
  });

  test(
    'three clicks lead from the link to a token, and the page greets the first stack',
    async () => {
      const holdfast = await server();
      const link = /#hfl-\w+/.exec(await runAdmin(holdfast, 'user', 'sign-in-link', 'ada'))?.[0] as string;
      await using chromium = await startChromium();
      const page = await chromium.context.newPage();
      const refusedByPolicy: string[] = [];
      page.on('console', (message) => {
        if (/Content Security Policy/.test(message.text())) refusedByPolicy.push(message.text());
      });
      await page.goto(`${holdfast.url}/sign-in/link${link}`);
      // Neither the address nor the history has the secret any more.
      expect(page.url()).toBe(`${holdfast.url}/sign-in/link`);
      expect(await findBarriers(page)).toEqual([]);
      let clicks = 0;
      const click = async (name: string): Promise<void> => {
        clicks++;
        await page.getByRole('button', { name, exact: true }).click();
      };
      await click('Sign in');
      await page.getByRole('heading', { name: 'Choose how to sign in from now on' }).waitFor();
      expect(await findBarriers(page)).toEqual([]);
      await page.getByLabel('Password', { exact: true }).fill('correct horse battery');
      await click('Set the password');
      await page.getByRole('heading', { name: 'No stacks yet' }).waitFor();
      expect(await findBarriers(page)).toEqual([]);
      await click('Create a token for the CLI');
      const login = (await page.getByText('PULUMI_ACCESS_TOKEN=').textContent()) as string;
      const [, token, url] = /^PULUMI_ACCESS_TOKEN=(hf-\w+) pulumi login (\S+)$/.exec(login) ?? [];
      expect(url).toBe(holdfast.url);
      const init = (await page.getByText('pulumi stack init').textContent()) as string;
      expect(init).toBe(`pulumi stack init ${holdfast.organization}/dev`);
      expect(clicks).toBe(3);
      // It is shown only once: neither a filter nor the end of the session takes it away.
      const filter = page.getByRole('combobox', { name: 'Find a project or stack' });
      await filter.fill('nothing');
      await page.getByRole('heading', { name: 'No stack matches' }).waitFor();
      await page.getByText(login).waitFor();
      expect(await findBarriers(page)).toEqual([]);
      await page.getByRole('button', { name: 'Show all stacks' }).click();
      await page.getByRole('heading', { name: 'No stacks yet' }).waitFor();
      await page.getByText(login).waitFor();
      const cookies = await chromium.context.cookies();
      await chromium.context.clearCookies();
      await page.evaluate("dispatchEvent(new Event('visibilitychange'))");
      await page.getByText('Your session has ended. Sign in').waitFor();
      await page.getByText(login).waitFor();
      await chromium.context.addCookies(cookies);
      await page.evaluate("dispatchEvent(new Event('visibilitychange'))");
      await page.getByText('Your session has ended. Sign in').waitFor({ state: 'detached' });
      await using workspace = await holdfast.workspace({ env: { PULUMI_ACCESS_TOKEN: token as string } });
      await workspace.writeProgram(
        'name: hello\nruntime: yaml\nresources:\n  note:\n    type: pulumi:index:Stash\n    properties:\n      input: Hello\n',
      );
      await workspace.runOk(['stack', 'init', `${holdfast.organization}/dev`]);
      await workspace.runOk(['up', '--yes', '--skip-preview']);
      const greeting = page.getByText('Your first stack is here');
      await greeting.waitFor();
      // It is counted as soon as it is listed.
      expect(await page.locator('main header').first().textContent()).toBe('Stacks1');
      await page.getByRole('button', { name: 'I have stored it' }).click();
      await page.getByText(login).waitFor({ state: 'detached' });
      await greeting.getByRole('link').click();
      await page.waitForURL(/\/dev-org\/[^/]+\/dev$/);
      // It is not greeted again after a filter that has matched nothing.
      await page.goto(`${holdfast.url}/?text=nothing`);
      await page.getByRole('button', { name: 'Show all stacks' }).click();
      await page.getByRole('row').filter({ hasText: '/dev' }).waitFor();
      expect(await greeting.count()).toBe(0);
      expect(refusedByPolicy).toEqual([]);
    },
    scenarioTimeoutMs,
  );
});
