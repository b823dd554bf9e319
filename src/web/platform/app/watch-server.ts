import { noteReached } from './reachability.ts';

const probeMs = 2_000;
/** Interval of checks whether the server answers, with the cheapest call: most pages request their data much less often. */
const beatMs = 2_000;
const probePath = '/trpc/me.get';
let beatPath = '/healthz';
/** A busy server is not away. */
const patienceMs = 10_000;
/** A stream may be cut every few seconds, for example by a proxy: shown data is not reloaded each time. */
const rereadMs = 30_000;
let rereadAt = Number.NEGATIVE_INFINITY;
let isAway = false;
let probe: ReturnType<typeof setTimeout> | undefined;
let reread = (): Promise<unknown> => Promise.resolve();

export function rereadBy(work: typeof reread): void {
  reread = work;
}

/** The page says so, and continues as soon as the server answers again. */
export function noteAway(): void {
  isAway = true;
  noteReached(false);
  clearTimeout(probe);
  probe = setTimeout(() => void checkReached(), probeMs);
}

/** Watches whether the server answers, as long as a user looks at the page. Returns a function that ends this. */
export function watchServer(): () => void {
  let isAsking = false;
  const beat = async (): Promise<void> => {
    if (document.visibilityState !== 'visible' || isAsking || probe !== undefined) return;
    isAsking = true;
    const answer = await ask(beatPath).catch(() => null);
    if (answer === null || !isJson(answer)) {
      if (beatPath === probePath || !(await isThere(probePath))) noteAway();
      // A proxy may answer or refuse this one path itself. A fault, for example of a restarting replica, passes.
      else if (answer !== null && answer.status < 500) beatPath = probePath;
    }
    isAsking = false;
  };
  const timer = setInterval(() => void beat(), beatMs);
  return () => clearInterval(timer);
}

function isThere(path: string): Promise<boolean> {
  return ask(path).then(isJson, () => false);
}

function ask(path: string): Promise<Response> {
  return fetch(path, { cache: 'no-store', signal: AbortSignal.timeout(patienceMs) });
}

/** Called when the stream of notifications is cut, which may have other reasons. */
export async function checkReached(): Promise<void> {
  clearTimeout(probe);
  probe = undefined;
  try {
    const answer = await ask(probePath);
    if (!isJson(answer)) return noteAway();
    noteReached(true);
    if (!answer.ok || (!isAway && performance.now() < rereadAt + rereadMs)) return;
    isAway = false;
    rereadAt = performance.now();
    await reread();
  } catch {
    noteAway();
  }
}

/** While the server is away, a proxy answers with a page. */
export function isJson(answer: Response): boolean {
  return (answer.headers.get('content-type') ?? '').includes('json');
}
