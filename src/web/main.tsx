import { CSPProvider } from '@base-ui/react/csp-provider';
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { type ReactNode, StrictMode, useEffect } from 'react';
import { createRoot } from 'react-dom/client';
import './platform/app/tokens.css';
import './platform/app/base.css';
import { ChunkNotice } from './platform/app/chunk-notice.tsx';
import { useMeQuery } from './platform/app/me.ts';
import { hasLoss, noteInput, noteUser, useSessionEnded } from './platform/app/session.ts';
import { queryClient } from './platform/app/trpc.ts';
import { sessionTexts } from './platform/texts.tsx';
import { SubmitBlock } from './platform/ui/submit-block.ts';
import { router } from './router.tsx';

const endedPollMs = 10_000;

/** Open forms use this to say that the session has ended. */
function SessionHalt({ children }: { readonly children: ReactNode }) {
  const isEnded = useSessionEnded();
  const { data, dataUpdatedAt } = useMeQuery(isEnded ? endedPollMs : undefined);
  // biome-ignore lint/correctness/useExhaustiveDependencies: each answer counts, also one like the last.
  useEffect(() => {
    if (data) noteUser(data.login);
  }, [data, dataUpdatedAt]);
  return <SubmitBlock value={isEnded ? <Ended /> : null}>{children}</SubmitBlock>;
}

function Ended() {
  return sessionTexts.ended((label) => (
    <a href="/sign-in" target="_blank" rel="noopener">
      {label}
    </a>
  ));
}

// The browser's own ways to leave a page do not say where they lead, and may be used by mistake.
router.history.block({
  blockerFn: ({ action }) => !['PUSH', 'REPLACE'].includes(action) && hasLoss() && !confirm(sessionTexts.leave),
  enableBeforeUnload: hasLoss,
});
addEventListener('input', noteInput);

// The focused element may be gone with the former page: the keyboard then continues from the content, not from the top.
router.subscribe('onRendered', ({ fromLocation, pathChanged }) => {
  if (fromLocation === undefined || !pathChanged || document.activeElement !== document.body) return;
  document.getElementById('content')?.focus({ preventScroll: true });
});

createRoot(document.getElementById('root') as HTMLElement).render(
  <StrictMode>
    {/* The content security policy permits no style elements. */}
    <CSPProvider disableStyleElements>
      <QueryClientProvider client={queryClient}>
        <SessionHalt>
          <RouterProvider router={router} />
          <ChunkNotice router={router} />
        </SessionHalt>
      </QueryClientProvider>
    </CSPProvider>
  </StrictMode>,
);
