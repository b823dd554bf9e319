import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { beforeAll, expect, test } from '@jest/globals';
import type { Page } from 'playwright-core';
import { holdfastOutput, runAdmin } from '../testkit/admin-command.ts';
import { callApi, callApiOk } from '../testkit/api-call.ts';
import type { TestBrowser } from '../testkit/chromium.ts';
import type { OwnHoldfastServer } from '../testkit/holdfast-server.ts';
import { suite } from '../testkit/suite.ts';
import { until } from '../testkit/until.ts';
import { fileWebServer } from '../testkit/web-server.ts';
import { filePage, findBarriers, findFlaws, findPopupFlaws, untilAsWide } from '../testkit/web-session.ts';

const hostile = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>';
const organization = 'dev-org';
const accessTab = `/${organization}/web/prod?tab=access`;
/** Pages that no navigation leads to. */
const otherPages = [`/${organization}/~/teams/red`, accessTab, '/~/about'];
/** Tests of these pages look for their barriers, with content. */
const searchedElsewhere =
  /~\/(access|activity|approvals|attention|ci(\?view=(runs|refusals|drift))?|references|rules|search|webhooks)$|^\/([\w-]+)?$|operator\/(audit|health|locks|queues|storage|tasks)?$/;
const navigations = ['Pages', 'Pages of the organization', 'Pages for operators', 'Views of CI'];

async function call(server: OwnHoldfastServer, procedure: string, input: object): Promise<{ readonly id?: string }> {
  const headers = { authorization: `token ${server.token}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ organization, ...input });
  const response = await fetch(`${server.url}/trpc/${procedure}`, { method: 'POST', headers, body });
  if (!response.ok) throw new Error(`${procedure}: ${response.status} ${await response.text()}`);
  const { result } = (await response.json()) as { readonly result: { readonly data?: { readonly id?: string } } };
  return result.data ?? {};
}

/** A DIY backend: with a stack, and one whose state the CLI refuses. */
async function writeStacks(folder: string): Promise<void> {
  const stacks = join(folder, '.pulumi/stacks/shop');
  await mkdir(stacks, { recursive: true });
  await writeFile(join(folder, '.pulumi/meta.yaml'), 'version: 1\n');
  for (const name of ['good', 'refused']) {
    const urn = (type: string) => `urn:pulumi:${name}::shop::${type}::a`;
    const root = { urn: urn('pulumi:pulumi:Stack'), custom: false, type: 'pulumi:pulumi:Stack' };
    const stash = { urn: urn('a:b:C'), custom: true, id: 'a', type: 'a:b:C', parent: root.urn };
    const resources = name === 'good' ? [root, stash] : [stash, root];
    const latest = { manifest: { time: '2026-01-01T00:00:00Z', magic: '', version: '' }, resources };
    await writeFile(join(stacks, `${name}.json`), JSON.stringify({ version: 3, checkpoint: { latest } }));
  }
}

/** The status of a call with a token. */
async function statusWith(server: OwnHoldfastServer, token: string): Promise<number> {
  return (await callApi({ url: server.url, token }, 'GET', `stacks/${organization}/web/prod`)).status;
}

await suite('pages of an organization', { ownServer: true, tools: ['chromium'] }, () => {
  const web = fileWebServer({ viewers: ['vera'] });
  let server: OwnHoldfastServer;
  let browser: TestBrowser;
  let page: Page;
  const { complaints, confirm, dialog, openPage, row, signInAs } = filePage();

  beforeAll(async () => {
    ({ browser, server } = await web());
    await runAdmin(server, 'create-user', 'zoe');
    await callApiOk(server, 'POST', `stacks/${organization}/web`, { stackName: 'prod' });
    await call(server, 'teams.create', { name: 'red', displayName: hostile, description: hostile });
    await call(server, 'roles.create', { name: 'releaser', description: hostile, permissions: ['write'] });
    page = await openPage(browser, server.url);
  }, 600_000);

  const open = (path: string) => page.goto(`${server.url}/${organization}/~/${path}`);

  async function choose(of: string, action: string): Promise<void> {
    await page.getByRole('button', { name: `Actions for ${of}`, exact: true }).click();
    await page.getByRole('menuitem', { name: action }).click();
    await dialog().waitFor();
  }

  test('a member is added without a mouse, gets another role, and is removed; the last admin stays', async () => {
    await open('members');
    await row('vera').waitFor();
    const button = page.getByRole('button', { name: 'Add a member' });
    await button.focus();
    await page.keyboard.press('Enter');
    await dialog().waitFor();
    await dialog().getByLabel('Login').and(page.locator(':focus')).waitFor();
    await page.keyboard.type('zoe');
    await page.keyboard.press('Tab');
    await page.keyboard.type('viewer');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await dialog().waitFor({ state: 'detached' });
    await row('zoe').getByText('viewer', { exact: true }).waitFor();
    await button.and(page.locator(':focus')).waitFor();

    await choose('zoe', 'Change the role');
    await dialog().getByLabel('Role').selectOption('member');
    await confirm('Change the role');
    await row('zoe').getByText('member', { exact: true }).waitFor();
    await choose('ada', 'Remove');
    await dialog().getByRole('button', { name: 'Remove the member' }).click();
    await dialog().getByRole('alert').getByText('last admin').waitFor();
    await page.keyboard.press('Escape');
    await page.getByLabel('Name').fill('zo');
    await page.waitForURL(/text=zo/);
    await row('vera').waitFor({ state: 'detached' });
  });

  test('a team gets a member and a grant, which the stack shows', async () => {
    await open('teams');
    await page.getByRole('link', { name: hostile }).click();
    await page.getByRole('button', { name: 'Add to the team' }).click();
    await dialog().getByLabel('Login').fill('zoe');
    await confirm('Add to the team');
    await row('zoe').waitFor();
    await choose('zoe', 'Make an admin of the team');
    await confirm('Make an admin of the team');
    await row('zoe').getByText('admin', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Add a grant' }).click();
    await dialog().getByLabel('Grant', { exact: true }).selectOption({ label: 'The role releaser' });
    await dialog().getByLabel('Stacks').fill('web/*');
    await confirm('Add the grant');
    await row('web/*').getByText('role releaser').waitFor();

    await page.goto(`${server.url}${accessTab}`);
    const members = page.getByRole('table', { name: 'Members' });
    await members.getByRole('button', { name: 'Why zoe has these permissions' }).click();
    await members.getByText('by the role member').first().waitFor();
    await page.getByRole('table', { name: 'Grants' }).getByRole('link', { name: 'red' }).waitFor();
    await choose('the grant on web/*', 'Revoke');
    await confirm('Revoke the grant');
    await page.getByText('No grants. Only roles apply.').waitFor();
  });

  test('a token is shown once, works, and is revoked', async () => {
    await open('tokens');
    await page.getByRole('button', { name: 'Create a token' }).click();
    await dialog().getByLabel('Name').fill('robot');
    await dialog().getByRole('button', { name: 'Create the token' }).click();
    await dialog().getByText('It is shown only once').waitFor();
    const token = (await dialog().locator('pre').textContent()) ?? '';
    expect(token).toMatch(/^hf-/);
    expect(await statusWith(server, token)).toBe(200);
    await confirm('I have stored it');
    await row('robot').waitFor();
    expect(await page.content()).not.toContain(token);
    await choose('robot', 'Revoke');
    await confirm('Revoke the token');
    await page.getByRole('heading', { name: 'No tokens yet' }).waitFor();
    expect(await statusWith(server, token)).toBe(401);
  });

  test('roles and trust policies are made, changed and deleted', async () => {
    await open('roles');
    await choose('releaser', 'Edit');
    await dialog().getByRole('checkbox', { name: 'decrypt' }).check();
    await confirm('Save');
    await row('releaser').getByText('decrypt', { exact: true }).waitFor();
    await choose('releaser', 'Delete');
    await confirm('Delete the role');
    await row('releaser').waitFor({ state: 'detached' });

    await open('trust-policies');
    await page.getByRole('button', { name: 'Trust an issuer' }).click();
    await dialog().getByLabel('Name').fill('github');
    await dialog().getByLabel('URL').fill('https://ci.example.com');
    await confirm('Trust the issuer');
    await page.getByText('its runs get no tokens').waitFor();
    await page.getByRole('button', { name: 'Add a policy' }).click();
    await dialog().getByLabel('Patterns').fill('*');
    await dialog().getByRole('button', { name: 'Add the policy' }).click();
    await dialog().getByRole('alert').getByText('every pipeline').waitFor();
    await dialog().getByLabel('Patterns').fill('repo:acme/web:*');
    await confirm('Add the policy');
    await row('sub = repo:acme/web:*').getByText('an organization token').waitFor();
    await choose('the policy', 'Remove');
    await confirm('Remove the policy');
    await page.getByText('its runs get no tokens').waitFor();
  });

  test('the audit log has all of it, by filters in the URL, with details, and as a file', async () => {
    await open('audit');
    await page.getByLabel('Action', { exact: true }).selectOption('member.add');
    await page.waitForURL(/action=member.add/);
    const event = row('Added a member').filter({ hasText: 'zoe' });
    await event.getByText('ada').waitFor();
    await event.getByRole('button', { name: 'Details of Added a member' }).click();
    await page.getByText('"role": "viewer"').waitFor();
    await page.reload();
    await event.waitFor();
    await page.getByLabel('Target').fill('no-such-object');
    await page.getByRole('heading', { name: 'Nothing matches' }).waitFor();
    await open('audit?action=member.add');
    const year = new Date().getFullYear();
    const from = page.getByLabel('From', { exact: true });
    await from.pressSequentially(`0102${year - 1}`);
    await page.waitForURL(new RegExp(`from=${year - 1}-01-02`));
    expect(await from.inputValue()).toBe(`${year - 1}-01-02`);
    await event.waitFor();
    await page.getByRole('button', { name: 'Export' }).click();
    await page.getByRole('menuitem', { name: 'As CSV' }).click();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      dialog().getByRole('button', { name: 'Export', exact: true }).click(),
    ]);
    const text = await readFile(await download.path(), 'utf8');
    expect(text).toMatch(/^number,timestamp.*\r\n\d+,.*member\.add.*zoe/);
  });

  test('imports are listed with what came and what did not, and whether it was compared', async () => {
    await open('imports');
    await page.getByRole('heading', { name: 'No imports yet' }).waitFor();
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-web-import-'));
    await writeStacks(folder);
    const words = ['import', '--from', `file://${folder}`, '--organization', organization];
    await holdfastOutput(server, {}, ...words, '--apply');
    await open('imports');
    await row(folder).getByText('2 stacks, 2 versions').waitFor();
    await row(folder).getByText('not verified').waitFor();
    await holdfastOutput(server, {}, ...words, '--verify');
    await rm(folder, { recursive: true });
    await page.reload();
    await row(folder).getByText('verified: 2 stacks').waitFor();
    await row(folder).getByRole('link', { name: 'Import' }).click();
    await row('shop/refused').getByText('The CLI refuses its newest state: urn:pulumi:refused').waitFor();
    await row('shop/good').getByText('nothing', { exact: true }).waitFor();
    // A page that is open while the run goes on shows its end.
    const details = /trpc\/[^?]*imports\.get/;
    await page.route(details, async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, body: (await response.text()).replace(/"endedAt":"[^"]*"/, '"endedAt":null') });
    });
    await page.reload();
    await page.getByText('still running').waitFor();
    await page.unroute(details);
    await page.getByText('still running').waitFor({ state: 'detached' });
    otherPages.push(new URL(page.url()).pathname);
    await page.getByRole('link', { name: 'shop/good' }).click();
    await page.waitForURL(/dev-org\/shop\/good$/);
  });

  test('what a policy group was given leaves its forms, and a removed group enables no pack', async () => {
    const packs = `orgs/${organization}/policypacks`;
    for (const versionTag of ['1.0.0', '2.0.0']) {
      const pack = { name: 'guard', displayName: 'Guard', versionTag, policies: [], runtime: 'nodejs' };
      const { requiredHeaders: headers, uploadURI } = await callApiOk(server, 'POST', packs, pack);
      await fetch(uploadURI, { method: 'PUT', headers, body: gzipSync('the files') });
      await callApiOk(server, 'POST', `${packs}/guard/versions/${versionTag}/complete`);
    }
    await call(server, 'policies.createGroup', { group: 'guarded' });
    await open('policies?group=guarded');
    await page.getByLabel('Version').selectOption('1.0.0');
    await page.getByRole('button', { name: 'Enable', exact: true }).click();
    await row('Guard').getByText('guarded (1.0.0)').waitFor();
    await page.getByLabel('Stack').fill('web/prod');
    await page.getByRole('button', { name: 'Add', exact: true }).click();
    await page.getByRole('link', { name: 'web/prod' }).waitFor();
    expect(await page.getByLabel('Stack').inputValue()).toBe('');
    expect(await page.getByLabel('Version').inputValue()).toBe('2.0.0');
    expect(await page.locator('[data-draft]').count()).toBe(0);
    await page.getByRole('button', { name: 'Remove the group' }).click();
    await confirm('Remove');
    await row('Guard').getByText('no group').waitFor();
  });

  test('an admin sees everywhere what a configuration declares, and changes it after a confirmation only', async () => {
    const api = async (method: string, at: string, body: object): Promise<string> =>
      (await callApiOk(server, method, `orgs/${organization}/${at}`, body)).id ?? '';
    const make = async (procedure: string, input: object): Promise<string> =>
      (await call(server, procedure, { organization, ...input })).id ?? '';
    const hook = { name: 'kept', displayName: 'Kept hook', payloadUrl: 'https://hooks.example.com/x', active: true };
    await api('POST', 'hooks', hook);
    await make('policies.createGroup', { group: 'kept' });
    const rule = (body: object) => api('POST', 'update-rules', { project: 'none', ...body });
    const kept = await rule({ kind: 'keep-events', settings: { days: 9_000 } });
    const press = (name: string | RegExp) => page.getByRole('button', { name }).click();
    const picking = (of: string | RegExp, item: string) => async () => {
      await press(of);
      await page.getByRole('menuitem', { name: item }).click();
    };
    const objects: readonly (readonly [
      kind: string,
      object: string,
      path: string,
      ...(readonly [open: () => Promise<void>, action: string] | readonly []),
    ])[] = [
      ['Organization', organization, 'access', () => press('Edit role permissions'), 'Save'],
      ['Member', 'vera', 'members', picking('Actions for vera', 'Remove…'), 'Remove the member'],
      [
        ...(['Role', await make('roles.create', { name: 'kept', description: '', permissions: ['read'] })] as const),
        ...(['roles', picking('Actions for kept', 'Delete…'), 'Delete the role'] as const),
      ],
      ['Team', 'red', 'teams/red', () => press(/^Edit$/), 'Save'],
      [
        ...(['Grant', await make('grants.give', { team: 'red', effect: 'allow', permissions: ['read'] })] as const),
        ...(['teams/red', picking(/^Actions for the grant/, 'Revoke…'), 'Revoke the grant'] as const),
      ],
      [
        ...(['Issuer', await make('issuers.create', { name: 'kept', url: 'https://ci.example.com/kept' })] as const),
        ...(['trust-policies', picking('Actions for kept', 'Edit…'), 'Save'] as const),
      ],
      [
        ...(['PolicyGroup', 'kept', 'policies?group=kept'] as const),
        async () => {
          await page.getByLabel('Stack', { exact: true }).fill('web/prod');
          await press(/^Add$/);
        },
        'Change the group',
      ],
      ['Webhook', 'kept', 'webhooks'],
      ['Webhook', 'kept', 'webhooks/kept', () => press(/^Edit$/), 'Save'],
      [...(['RetentionRule', kept, 'rules'] as const), ...([() => press(/^Edit (?!the freeze)/), 'Save'] as const)],
      [
        // A new rule for the same stacks replaces it.
        ...(['RetentionRule', kept, 'rules'] as const),
        async () => {
          await press('Add a retention rule');
          await dialog().getByLabel('Kind').selectOption('keep-events');
          await dialog().getByLabel('Applies to', { exact: true }).selectOption('project');
          await dialog().getByLabel('Project').fill('none');
        },
        'Add the rule',
      ],
      ['UpdateRule', await rule({ kind: 'freeze', settings: {} }), 'rules', () => press(/^Thaw/), 'Thaw'],
    ];
    const mark = page.locator('main').getByText('Managed by apply');
    const act = (action: string) => dialog().getByRole('button', { name: action, exact: true });
    for (const [kind, object, at, openDialog, action = ''] of objects) {
      const key = { kind, name: 'one' };
      await api('PATCH', 'managed-objects', { set: [{ ...key, object, labels: { repo: 'infra' } }] });
      await open(at);
      await mark.waitFor();
      expect({ kind, at, marks: await mark.count() }).toEqual({ kind, at, marks: 1 });
      if (at.includes('/') || kind === 'Member') expect(await findFlaws(page)).toEqual([]);
      if (openDialog !== undefined) {
        await openDialog();
        await dialog()
          .getByText(`A configuration declares it as ${kind} one with repo=infra, applied by ada`)
          .waitFor();
        await dialog().getByText('The next holdfast apply may revert this change.').waitFor();
        expect({ kind, isEnabled: await act(action).isEnabled() }).toEqual({ kind, isEnabled: false });
        if (kind === 'Team') expect(await findBarriers(page)).toEqual([]);
        await dialog().getByLabel('Change it anyway').check();
        await until(() => act(action).isEnabled(), `${kind} can be changed`);
        // An urgent thaw goes on.
        if (kind === 'UpdateRule') await confirm(action);
        else await dialog().getByRole('button', { name: 'Close' }).click();
        await dialog().waitFor({ state: 'detached' });
      }
      await api('PATCH', 'managed-objects', { remove: [key] });
    }
    await page.reload();
    await press(/^Edit/);
    await dialog().waitFor();
    await until(() => act('Save').isEnabled(), 'a rule that nothing declares is changed at once');
    await dialog().getByRole('button', { name: 'Close' }).click();
    const error = { message: 'No', code: -32_003, data: { code: 'FORBIDDEN', httpStatus: 403 } };
    await page.route(/access\.declaration/, async (route) => {
      const names = new URL(route.request().url()).pathname.replace('/trpc/', '').split(',');
      const answers = (await (await route.fetch()).json()) as object[];
      const json = answers.map((answer, at) => (names[at] === 'access.declaration' ? { error } : answer));
      await route.fulfill({ status: 207, json });
    });
    await page.reload();
    await press(/^Edit/);
    await dialog().getByText('Could not determine whether apply manages this.').waitFor();
    expect(await act('Save').isEnabled()).toBe(false);
    await dialog().getByLabel('Change it anyway').check();
    await until(() => act('Save').isEnabled(), 'it is changed after a confirmation');
    await dialog().getByRole('button', { name: 'Close' }).click();
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    await page.getByText('Nothing is frozen').waitFor();

    // The user who removes a group sees it disappear. A later visitor of the link is told.
    const missing = page.getByText('The linked policy group does not exist.');
    await open('policies?group=kept');
    await press('Remove the group');
    await until(() => act('Remove').isEnabled(), 'nothing declares it');
    await confirm('Remove');
    await row('kept').waitFor({ state: 'detached' });
    expect(await missing.count()).toBe(0);
    await page.reload();
    await missing.waitFor();
  });

  test('names and descriptions are text', async () => {
    await open('teams');
    await page.getByRole('link', { name: hostile }).waitFor();
    await page.getByRole('link', { name: hostile }).click();
    await page.getByRole('heading', { name: hostile }).waitFor();
    expect(await page.locator('main img').count()).toBe(0);
    expect(await page.evaluate('window.hacked')).toBeUndefined();
  });

  test('no page has barriers, in both themes, nor is wider than a phone; each has its title', async () => {
    await runAdmin(server, 'set-site-admin', 'ada');
    const found: string[] = [];
    const opened: string[] = [];
    const addresses = new Set([`/${organization}/~/members`, ...otherPages]);
    for (const path of addresses) {
      await page.goto(`${server.url}${path}`);
      // Rendered at once with what is still busy.
      await page.locator('main h1').waitFor();
      await page.locator('[aria-busy="true"]').first().waitFor({ state: 'detached' });
      if (!searchedElsewhere.test(path)) found.push(...(await findBarriers(page)));
      await page.setViewportSize({ width: 390, height: 844 });
      await untilAsWide(page, 390);
      await page.setViewportSize({ width: 1280, height: 720 });
      const crumb = await page.locator('nav[aria-label="Where you are"] > :last-child').textContent();
      const title = await page.title();
      if (!title.endsWith(' - Holdfast') || !title.includes(crumb ?? '')) found.push(`${path} has the title ${title}`);
      for (const name of navigations)
        for (const link of await page.getByRole('navigation', { name, exact: true }).getByRole('link').all())
          addresses.add((await link.getAttribute('href')) ?? '');
      found.push(...(await findPopupFlaws(page, opened)));
    }
    expect(addresses.size).toBeGreaterThan(30);
    expect(opened.length).toBeGreaterThan(42);
    // It is the address of no page, and of no stack of a project "~".
    await page.goto(`${server.url}/${organization}/~/nowhere`);
    await page.getByRole('heading', { name: 'Page not found' }).waitFor();
    expect(await page.getByRole('navigation', { name: 'Where you are' }).textContent()).not.toContain('~');
    expect(found).toEqual([]);
  }, 600_000);

  test('a viewer sees members and teams, and no button that would fail', async () => {
    await signInAs('vera');
    await open('members');
    await row('ada').waitFor();
    const links = page.getByRole('navigation', { name: 'Pages of the organization' });
    await until(
      async () =>
        (await links.getByRole('link').allTextContents()).join() === 'Members,Teams,Roles,Tokens,Approvals,Policies',
      'the pages of a viewer are named',
    );
    for (const path of ['members', 'teams', 'teams/red', 'roles']) {
      await page.goto(`${server.url}/${organization}/~/${path}`, { waitUntil: 'networkidle' });
      await page.locator('main h1').waitFor();
      expect([path, await page.locator('main button').allTextContents()]).toEqual([path, []]);
    }
    await open('tokens');
    await page.getByRole('button', { name: 'Create a token' }).waitFor();
    expect(await page.getByRole('link', { name: `Of ${organization}` }).count()).toBe(0);
    await page.goto(`${server.url}${accessTab}`);
    await page.getByText('by the role viewer').first().waitFor();
    expect(await page.getByRole('table').count()).toBe(0);
  });

  test('the browser has nothing to complain about', () => expect(complaints).toEqual([]));
});
