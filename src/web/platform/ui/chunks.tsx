import { type ComponentType, createElement, type ReactNode, useEffect, useSyncExternalStore } from 'react';

// If a part of the web UI cannot be loaded, because the server restarts or a proxy refuses it, the rest of the page must survive: the part
// is missing until a retry succeeds. The mechanisms of React and of the router would keep the error.

/** The page waits for this part, after a failed attempt to load it. */
export interface MissingChunk {
  /** A page is awaited only while the router navigates to it; a part is awaited as long as it is on the page. */
  readonly isPage: boolean;
  readonly retry: () => void;
  /** Number of failed attempts since `forgive` was called. */
  readonly failures: () => number;
  readonly forgive: () => void;
}

interface Chunk<Content> extends MissingChunk {
  readonly read: () => Content | null;
  /** Resolves once the content is loaded, after any number of attempts, so it never rejects. */
  readonly load: () => Promise<void>;
  readonly subscribe: (listener: () => void) => () => void;
  /** Loads the content for a part that is on the page, until the returned function is called. */
  readonly want: () => () => void;
}

let missing: readonly MissingChunk[] = [];
const watchers = new Set<() => void>();

function setMissing(chunk: MissingChunk, isMissing: boolean): void {
  if (missing.includes(chunk) === isMissing) return;
  missing = isMissing ? [...missing, chunk] : missing.filter((other) => other !== chunk);
  for (const watch of watchers) watch();
}

function watchMissing(watch: () => void): () => void {
  watchers.add(watch);
  return () => watchers.delete(watch);
}

export function useMissingChunks(): readonly MissingChunk[] {
  return useSyncExternalStore(watchMissing, () => missing);
}

/** Preloading failed when the pointer was over a link, and the page was never opened. */
export function forgetMissingPages(): void {
  for (const chunk of missing) {
    if (!chunk.isPage) continue;
    chunk.forgive();
    setMissing(chunk, false);
  }
}

function createChunk<Content>(importer: () => Promise<Content>, isPage: boolean): Chunk<Content> {
  let content: Content | null = null;
  let isLoading = false;
  let wants = 0;
  let failures = 0;
  let finish = (): void => {};
  const done = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const listeners = new Set<() => void>();
  const attempt = async (): Promise<void> => {
    isLoading = true;
    try {
      await reloadStyles();
      content = await importer();
      setMissing(chunk, false);
      finish();
      for (const listener of listeners) listener();
    } catch {
      failures++;
      setMissing(chunk, isPage || wants > 0);
    }
    isLoading = false;
  };
  const load = (): Promise<void> => {
    if (content === null && !isLoading) void attempt();
    return done;
  };
  const chunk: Chunk<Content> = {
    isPage,
    failures: () => failures,
    forgive: () => {
      failures = 0;
    },
    load,
    read: () => content,
    retry: () => void load(),
    subscribe: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    want: () => {
      wants++;
      void load();
      return () => {
        wants--;
        if (wants === 0 && !isPage) setMissing(chunk, false);
      };
    },
  };
  return chunk;
}

/** Loaded when it is first rendered, or when `preload` is called. Until then, `fallback` takes its place. */
export function lazyPart<Props extends object>(
  importer: () => Promise<ComponentType<Props>>,
  fallback: ReactNode = null,
): ComponentType<Props> & { readonly preload: () => void } {
  const chunk = createChunk(importer, false);
  return Object.assign(createLazy(chunk, fallback), { preload: chunk.retry });
}

/** The router calls `preload` before it shows the page, and keeps the former page until it resolves. */
export function lazyPage<Name extends string>(
  importer: () => Promise<{ readonly [Key in NoInfer<Name>]: ComponentType }>,
  name: Name,
): (() => ReactNode) & { readonly preload: () => Promise<void> } {
  const chunk = createChunk<ComponentType>(async () => (await importer())[name], true);
  const Lazy = createLazy(chunk, null);
  return Object.assign(() => createElement(Lazy), { preload: chunk.load });
}

function createLazy<Props extends object>(chunk: Chunk<ComponentType<Props>>, fallback: ReactNode) {
  return function Lazy(props: Props): ReactNode {
    const content = useSyncExternalStore(chunk.subscribe, chunk.read);
    useEffect(() => (content === null ? chunk.want() : undefined), [content]);
    return content === null ? fallback : createElement(content, props);
  };
}

/** The browser failed to load these. Vite requests each only once. */
const brokenStyles = new Set<HTMLLinkElement>();
addEventListener(
  'error',
  ({ target }) => {
    if (target instanceof HTMLLinkElement && target.rel === 'stylesheet') brokenStyles.add(target);
  },
  true,
);

let reloading: Promise<unknown> | null = null;

/** Rejects if one cannot be loaded: a page never appears without its styles. */
function reloadStyles(): Promise<unknown> {
  reloading ??= Promise.all([...brokenStyles].map(reload)).finally(() => {
    reloading = null;
  });
  return reloading;
}

function reload(broken: HTMLLinkElement): Promise<void> {
  const link = document.createElement('link');
  return new Promise((resolve, reject) => {
    link.addEventListener('load', () => resolve());
    link.addEventListener('error', () => reject(new Error(`Cannot load ${link.href}`)));
    link.rel = 'stylesheet';
    link.href = broken.href;
    brokenStyles.delete(broken);
    broken.replaceWith(link);
  });
}
