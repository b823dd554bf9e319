import { type AnyRouter, useRouterState } from '@tanstack/react-router';
import { CircleAlert, CloudOff, RefreshCw } from 'lucide-react';
import { useEffect, useMemo, useState } from 'react';
import { chunkTexts, problemTexts } from '../texts.tsx';
import { Button } from '../ui/button.tsx';
import { forgetMissingPages, type MissingChunk, useMissingChunks } from '../ui/chunks.tsx';
import { Notice } from '../ui/notice.tsx';
import styles from './chunk-notice.module.css';
import { noteReached } from './reachability.ts';

const retryMs = 3_000;
const answerMs = 5_000;

/** Some browsers remember that a file could not be loaded, and do not request it again until the page is reloaded. */
const maxRetries = 3;

type Server = 'away' | 'same-build' | 'other-build';
/** `stuck`: the server has the part, but retries do not load it. */
type Cause = Server | 'stuck';

/** The shown content stays, and is never reloaded without need. */
export function ChunkNotice({ router }: { readonly router: AnyRouter }) {
  const missing = useMissingChunks();
  const isNavigating = useRouterState({ router, select: ({ status }) => status === 'pending' });
  useEffect(() => router.subscribe('onBeforeNavigate', forgetMissingPages), [router]);
  const awaited = useMemo(() => missing.filter(({ isPage }) => isNavigating || !isPage), [missing, isNavigating]);
  if (awaited.length === 0) return null;
  return <Missing awaited={awaited} isFirst={router.state.resolvedLocation === undefined} />;
}

function Missing({ awaited, isFirst }: { readonly awaited: readonly MissingChunk[]; readonly isFirst: boolean }) {
  const [cause, setCause] = useState<Cause | null>(null);
  const isPage = awaited.some((chunk) => chunk.isPage);
  const retry = (): void => {
    for (const chunk of awaited) chunk.retry();
  };
  useEffect(() => {
    const timer = setInterval(() => {
      for (const chunk of awaited) chunk.retry();
    }, retryMs);
    return () => clearInterval(timer);
  }, [awaited]);
  useEffect(() => {
    let isOver = false;
    let retries = -1;
    const stop = (): void => {
      isOver = true;
      clearInterval(timer);
    };
    const ask = async (): Promise<void> => {
      const server = await askServer();
      if (isOver) return;
      if (server === 'away') noteReached(false);
      retries = server === 'same-build' ? retries + 1 : -1;
      if (retries < 0) for (const chunk of awaited) chunk.forgive();
      // A large part that is still being loaded over a slow line has not failed.
      const isStuck = retries >= maxRetries && awaited.some(({ failures }) => failures() > maxRetries);
      const found: Cause = isStuck ? 'stuck' : server;
      // After a release, the parts of this page have other names. The address is already that of the new page. A page that was just loaded
      // gains nothing from a reload, and a part is not worth the loss of typed text.
      if ((found === 'other-build' || found === 'stuck') && isPage && !isFirst) {
        stop();
        location.reload();
      }
      setCause(found);
    };
    const timer = setInterval(() => void ask(), retryMs);
    void ask();
    return stop;
  }, [awaited, isPage, isFirst]);
  if (cause === null) return null;
  return (
    <div className={styles['place']} role="alert">
      <Notice
        tone="warning"
        {...messageOf(cause, isPage)}
        action={
          <>
            <Button size="small" onClick={retry}>
              {problemTexts.tryAgain}
            </Button>
            {cause === 'away' ? null : (
              <Button size="small" onClick={() => location.reload()}>
                {chunkTexts.reload}
              </Button>
            )}
          </>
        }
      />
    </div>
  );
}

function messageOf(cause: Cause, isPage: boolean) {
  if (cause === 'away') {
    const title = problemTexts.noAnswer;
    return {
      title,
      icon: <CloudOff size={18} />,
      children: <p>{isPage ? chunkTexts.pageOpens : chunkTexts.partAppears}</p>,
    };
  }
  if (cause === 'other-build') {
    const title = chunkTexts.newVersion;
    return { title, icon: <RefreshCw size={18} />, children: <p>{chunkTexts.reloadToGoOn}</p> };
  }
  const title = isPage ? chunkTexts.notLoaded : chunkTexts.partNotLoaded;
  const next = cause === 'stuck' ? chunkTexts.reloadToGoOn : isPage ? chunkTexts.opens : chunkTexts.appears;
  return { title, icon: <CircleAlert size={18} />, children: <p>{next}</p> };
}

const ownScript = document.querySelector('script[type="module"][src]')?.getAttribute('src');

async function askServer(): Promise<Server> {
  try {
    const signal = AbortSignal.timeout(answerMs);
    const answer = await fetch('/', { cache: 'no-store', headers: { accept: 'text/html' }, signal });
    const script = /<script type="module"[^>]* src="([^"]+)"/.exec(await answer.text())?.[1];
    if (!answer.ok || script === undefined) return 'away';
    return script === ownScript ? 'same-build' : 'other-build';
  } catch {
    return 'away';
  }
}
