import { beforeAll, expect, test } from '@jest/globals';
import type { Locator, Page } from 'playwright-core';
import { callApiOk } from '../testkit/api-call.ts';
import type { OwnHoldfastServer } from '../testkit/holdfast-server.ts';
import { largeState } from '../testkit/large-state.ts';
import { ScriptedStack } from '../testkit/scripted-runs.ts';
import { scenarioTimeoutMs, suite } from '../testkit/suite.ts';
import { until } from '../testkit/until.ts';
import { fileWebServer } from '../testkit/web-server.ts';
import { findFlaws, signIn } from '../testkit/web-session.ts';

const sizes = [6_002, 50_002] as const;
const manifest = { time: '2026-01-01T00:00:00Z', magic: '', version: '' };

await suite('graphs of large stacks', { ownServer: true, tools: ['chromium'] }, () => {
  const web = fileWebServer();
  let server: OwnHoldfastServer;
  let page: Page;
  let refused: string[];

  beforeAll(async () => {
    const { browser, server: started } = await web();
    server = started;
    for (const size of sizes) {
      const stack = await ScriptedStack.create(server, { project: `with-${size}` });
      const deployment = { manifest, resources: largeState(stack, size) };
      await stack.call('POST', `${server.organization}/${stack.project}/dev/import`, { version: 3, deployment });
    }
    ({ page, refused } = await signIn(browser, server.url, 'ada'));
    await until(async () => (await countFound('type:pulumi:pulumi:Stack')) === 2, 'both states are indexed', {
      timeoutMs: 600_000,
    });
  }, scenarioTimeoutMs);

  const boxes = () => page.locator('[data-box]');
  const box = (name: string | RegExp) => boxes().getByRole('button', { name });
  /** Boxes that are at least partly in the picture, and the smallest text in them, in pixels on the screen. */
  const look = () =>
    page.evaluate(`(() => {
      const canvas = document.querySelector('.react-flow').getBoundingClientRect();
      const found = [...document.querySelectorAll('.react-flow__node')].filter((each) => {
        const { bottom, left, right, top } = each.getBoundingClientRect();
        return right > canvas.left && left < canvas.right && bottom > canvas.top && top < canvas.bottom;
      });
      const sizes = found.flatMap((each) => [...each.querySelectorAll('span')]).filter((text) => text.offsetWidth > 0)
        .map((text) => parseFloat(getComputedStyle(text).fontSize) * text.getBoundingClientRect().width / text.offsetWidth);
      return { boxes: found.length, smallestText: Math.min(...sizes) };
    })()`) as Promise<{ boxes: number; smallestText: number }>;
  const isInView = async (button: Locator): Promise<boolean> => {
    const [inner, outer] = await Promise.all([button.boundingBox(), page.locator('.react-flow').boundingBox()]);
    if (inner === null || outer === null) return false;
    const isBeside = inner.x < outer.x || inner.x + inner.width > outer.x + outer.width;
    return !isBeside && inner.y >= outer.y && inner.y + inner.height <= outer.y + outer.height;
  };
  const open = async (size: number, more = '') => {
    await page.goto(`${server.url}/${server.organization}/with-${size}/dev?tab=resources&shape=graph${more}`);
    await page.locator('.react-flow__node').first().waitFor();
  };

  test.each(sizes)(
    'the graph of %d resources opens collapsed and readable, expands by clicks, and finds a resource',
    async (size) => {
      await open(size);
      const services = Math.floor((size - 2) / 10);
      const group = box(new RegExp(`acme:shop:Service ${services.toLocaleString('en')} resources`));
      await group.waitFor();
      expect(await boxes().count()).toBeLessThanOrEqual(40);
      await until(async () => {
        const { boxes: inView, smallestText } = await look();
        return inView >= 3 && smallestText >= 11;
      }, 'text is readable');
      await group.focus();
      await page.keyboard.press('Enter');
      await box(`${(services - 25).toLocaleString('en')} more`).waitFor();
      // By the keyboard, because the picture may still move under a pointer.
      await box('Expand service-0').press('Enter');
      // The buckets of the first service depend on the database of another one, which the rest of the services stands for.
      await box(/^database-0 aws:rds:Instance/).waitFor();
      expect(await boxes().count()).toBeLessThanOrEqual(100);
      await box('Collapse service-0').click();
      await box(/^database-0 aws:rds:Instance/).waitFor({ state: 'detached' });

      await page.getByRole('searchbox', { name: 'Search in: Graph of resources' }).fill('database-77');
      await page.getByRole('button', { name: 'database-77 aws:rds:Instance', exact: true }).click();
      await page.getByRole('region', { name: 'Resource database-77' }).waitFor();
      const near = ['network aws:ec2:Vpc', 'service-77 acme:shop:Service, 9 inside', 'bucket-77-0 aws:s3:Bucket'];
      for (const name of near) await box(name).waitFor();
      expect(await boxes().count()).toBe(11);
      await page.getByRole('button', { name: 'All', exact: true }).click();
      await box('Collapse service-77').waitFor();
      await box('database-77 aws:rds:Instance').and(page.locator('[aria-current]')).waitFor();
      await until(async () => (await look()).smallestText >= 11, 'text is readable');
      expect(refused).toEqual([]);
    },
    scenarioTimeoutMs,
  );

  test(
    'only what is in view is drawn, long lists go on, and the outline says the same in words',
    async () => {
      const [size] = sizes;
      await open(size);
      await box(/acme:shop:Service \d+ resources/).click();
      await page.getByText('Outline', { exact: true }).click();
      const outline = page.getByRole('group').filter({ has: page.getByText('Outline', { exact: true }) });
      for (let shown = 25; shown < 125; shown += 25)
        await outline.getByRole('button', { name: `${600 - shown} more` }).click();
      const map = page.locator('.react-flow__minimap-node');
      await until(async () => (await map.count()) > 125, 'the map has all boxes');
      // Each is drawn until it is measured.
      await until(async () => (await boxes().count()) < 100, 'only what is in view is drawn');
      await outline.getByRole('button', { name: 'Expand service-1', exact: true }).click();
      await outline.getByText('needs network').first().waitFor();
      await until(() => isInView(box('Collapse service-1')), 'the box is in view');
      const [first] = await boxes().locator('button').all();
      await first?.focus();
      for (let step = 0; step < 12; step++) {
        await page.keyboard.press('Tab');
        const focused = boxes().locator('button:focus');
        if ((await focused.count()) > 0) await until(() => isInView(focused), 'the focus is in view');
      }
      await open(size, `&urn=${encodeURIComponent(`urn:pulumi:dev::with-${size}::aws:ec2/vpc:Vpc::network`)}`);
      // Its left end is in view. Playwright scrolls to a point that is not, which the picture undoes while the button is pressed.
      await box('588 more').click({ position: { x: 20, y: 20 } });
      await box('563 more').waitFor();
      await open(size);
      await box(/acme:shop:Service/).waitFor();
      expect(await findFlaws(page)).toEqual([]);
    },
    scenarioTimeoutMs,
  );

  test(
    'no click is lost while the picture is laid out, nor by a hand that is not still',
    async () => {
      const [size] = sizes;
      // Questions to the worker wait in `heldBack`, if it is there.
      await page.addInitScript(`
        const { postMessage } = Worker.prototype;
        window.answers = 0;
        Worker.prototype.postMessage = function (...values) {
          if (!this.isCounted) this.addEventListener('message', () => { window.answers += 1; });
          this.isCounted = true;
          const send = () => postMessage.apply(this, values);
          if (window.heldBack) window.heldBack.push(send);
          else send();
        };`);
      const holdBack = () => page.evaluate('window.heldBack = []');
      const goOn = () =>
        page.evaluate(
          '(() => { const held = window.heldBack; window.heldBack = null; for (const send of held) send(); })()',
        );
      const answers = () => page.evaluate('window.answers') as Promise<number>;
      await open(size);
      const group = box(/acme:shop:Service/);
      await group.hover();
      const at = await group.boundingBox();
      await page.mouse.down();
      await page.mouse.move((at?.x ?? 0) + (at?.width ?? 0) / 2 + 4, (at?.y ?? 0) + (at?.height ?? 0) / 2 + 2);
      await page.mouse.up();
      await box('575 more').waitFor();

      await holdBack();
      await box('Expand service-100').press('Enter');
      await box('Expand service-101').press('Enter');
      await goOn();
      await box('Collapse service-101').waitFor();
      await box('Collapse service-100').waitFor();
      for (const name of ['service-100', 'service-101']) {
        await box(`Collapse ${name}`).press('Enter');
        await box(`Expand ${name}`).waitFor();
      }

      await holdBack();
      await box('Expand service-100').press('Enter');
      await box('Expand service-101').hover();
      await page.mouse.down();
      const before = await answers();
      await goOn();
      await until(async () => (await answers()) > before, 'the picture is laid out');
      await page.mouse.up();
      await box('Collapse service-100').waitFor();
      await box('Collapse service-101').waitFor();

      // A menu takes the release of a button, and so does another window.
      await box('Collapse service-101').dispatchEvent('pointerdown', { button: 2 });
      await box('Collapse service-101').press('Enter');
      await box('Expand service-101').waitFor();
      await box('Expand service-101').dispatchEvent('pointerdown', { button: 0 });
      await page.evaluate("window.dispatchEvent(new Event('blur'))");
      await box('Expand service-101').press('Enter');
      await box('Collapse service-101').waitFor();
    },
    scenarioTimeoutMs,
  );

  /** Resources that the index finds. */
  const countFound = async (query: string): Promise<number> => {
    const path = `orgs/${server.organization}/search/resources?query=${encodeURIComponent(query)}`;
    return (await callApiOk(server, 'GET', path)).total;
  };
});
