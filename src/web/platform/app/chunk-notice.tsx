import { type AnyRouter, useRouterState } from '@tanstack/react-router';
import { CircleAlert, CloudOff, RefreshCw } from 'lucide-react';
import { useEffect, useState } from 'react';
import { chunkTexts, problemTexts } from '../texts.tsx';
import { Button } from '../ui/button.tsx';
import { forgetMissingPages, type MissingChunk, useMissingChunks } from '../ui/chunks.tsx';
import { Notice } from '../ui/notification.tsx';
import styles from './chunk-notice.module.css';
import { noteReached } from './reachability.ts';

const retryMs = 3_000;
const answerMs = 5_000;

/** What the server says about its build of the web UI. */
type Server = 'away' | 'same-build' | 'other-build';

/** Says that a page or a part of it could not be loaded. What is shown stays, and is never loaded anew without need. */
export function ChunkNotice({ router }: { readonly router: AnyRouter }) {
  const missing = useMissingChunks();
  const isNavigating = useRouterState({ router, select: ({ status }) => status === 'pending' });
  useEffect(() => router.subscribe('onBeforeNavigate', forgetMissingPages), [router]);
  const awaited = missing.filter(({ isPage }) => isNavigating || !isPage);
  if (awaited.length === 0) return null;
  return <Missing awaited={awaited} isFirst={router.state.resolvedLocation === undefined} />;
}

function Missing({ awaited, isFirst }: { readonly awaited: readonly MissingChunk[]; readonly isFirst: boolean }) {
  const [server, setServer] = useState<Server | null>(null);
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
    const stop = (): void => {
      isOver = true;
      clearInterval(timer);
    };
    const ask = async (): Promise<void> => {
      const found = await askServer();
      if (isOver) return;
      if (found === 'away') noteReached(false);
      // After a release, the parts of this page have other names. The address is already that of the new page; a page that was
      // just loaded gains nothing from being loaded again, and a part is not worth what has been typed.
      if (found === 'other-build' && isPage && !isFirst) {
        stop();
        location.reload();
      }
      setServer(found);
    };
    const timer = setInterval(() => void ask(), retryMs);
    void ask();
    return stop;
  }, [isPage, isFirst]);
  if (server === null) return null;
  return (
    <div className={styles['place']} role="alert">
      <Notice
        tone="warning"
        {...messageOf(server, isPage)}
        action={
          <>
            <Button size="small" onClick={retry}>
              {problemTexts.tryAgain}
            </Button>
            {server === 'away' ? null : (
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

function messageOf(server: Server, isPage: boolean) {
  if (server === 'away') {
    const title = problemTexts.noAnswer;
    return {
      title,
      icon: <CloudOff size={18} />,
      children: <p>{isPage ? chunkTexts.pageOpens : chunkTexts.partAppears}</p>,
    };
  }
  if (server === 'other-build') {
    const title = chunkTexts.newVersion;
    return { title, icon: <RefreshCw size={18} />, children: <p>{chunkTexts.reloadToGoOn}</p> };
  }
  const title = isPage ? chunkTexts.notLoaded : chunkTexts.partNotLoaded;
  return {
    title,
    icon: <CircleAlert size={18} />,
    children: <p>{isPage ? chunkTexts.opens : chunkTexts.appears}</p>,
  };
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
