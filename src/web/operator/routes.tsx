import { createRoute, redirect } from '@tanstack/react-router';
import { rootRoute } from '../platform/app/root-route.tsx';
import { pageTexts } from '../platform/texts.tsx';
import { lazyPage } from '../platform/ui/chunks.tsx';

const operator = createRoute({
  getParentRoute: () => rootRoute,
  path: '/~/operator',
  component: lazyPage(() => import('./operator-layout.tsx'), 'OperatorLayout'),
});

const first = createRoute({
  getParentRoute: () => operator,
  path: '/',
  beforeLoad: () => {
    throw redirect({ to: '/~/operator/health', replace: true });
  },
});

const health = createRoute({
  getParentRoute: () => operator,
  path: 'health',
  component: lazyPage(() => import('./health-page.tsx'), 'HealthPage'),
  staticData: { crumb: pageTexts.health },
});

const queues = createRoute({
  getParentRoute: () => operator,
  path: 'queues',
  component: lazyPage(() => import('./job-queues-page.tsx'), 'JobQueuesPage'),
  staticData: { crumb: pageTexts.queues },
});

const locks = createRoute({
  getParentRoute: () => operator,
  path: 'locks',
  component: lazyPage(() => import('./locks-page.tsx'), 'LocksPage'),
  staticData: { crumb: pageTexts.locks },
});

const storage = createRoute({
  getParentRoute: () => operator,
  path: 'storage',
  component: lazyPage(() => import('./storage-page.tsx'), 'StoragePage'),
  staticData: { crumb: pageTexts.storage },
});

const backups = createRoute({
  getParentRoute: () => operator,
  path: 'backups',
  component: lazyPage(() => import('./backups-page.tsx'), 'BackupsPage'),
  staticData: { crumb: pageTexts.backups },
});

const tasks = createRoute({
  getParentRoute: () => operator,
  path: 'tasks',
  component: lazyPage(() => import('./tasks-page.tsx'), 'TasksPage'),
  staticData: { crumb: pageTexts.tasks },
});

const audit = createRoute({
  getParentRoute: () => operator,
  path: 'audit',
  component: lazyPage(() => import('./server-audit-page.tsx'), 'ServerAuditPage'),
  staticData: { crumb: pageTexts.audit },
});

export const operatorRoutes = operator.addChildren([first, health, queues, locks, storage, backups, tasks, audit]);
