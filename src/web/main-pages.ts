import { History, Waypoints, Workflow } from 'lucide-react';
import { pageTexts } from './platform/texts.tsx';

export const mainPages = {
  references: { name: pageTexts.references, Icon: Waypoints, link: { to: '/$organization/~/references' } },
  ci: { name: pageTexts.ci, Icon: Workflow, link: { to: '/$organization/~/ci' } },
  activity: { name: pageTexts.activity, Icon: History, link: { to: '/$organization/~/activity' } },
} as const;
