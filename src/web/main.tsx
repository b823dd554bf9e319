import { CSPProvider } from '@base-ui/react/csp-provider';
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import './platform/app/tokens.css';
import './platform/app/base.css';
import { SessionHalt } from './platform/app/session-halt.tsx';
import { queryClient } from './platform/app/trpc.ts';
import { router } from './router.tsx';

// After a release, parts of the page that this tab has not loaded yet have other names.
addEventListener('vite:preloadError', (event) => {
  event.preventDefault();
  location.reload();
});

createRoot(document.getElementById('root') as HTMLElement).render(
  <StrictMode>
    {/* The policy of the page permits no style elements. */}
    <CSPProvider disableStyleElements>
      <QueryClientProvider client={queryClient}>
        <SessionHalt>
          <RouterProvider router={router} />
        </SessionHalt>
      </QueryClientProvider>
    </CSPProvider>
  </StrictMode>,
);
