import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { type LinkProps, useNavigate, useRouter } from '@tanstack/react-router';
import {
  Activity,
  Bookmark,
  Building2,
  Inbox,
  Info,
  Layers,
  LogOut,
  Monitor,
  Moon,
  Search,
  Star,
  Sun,
  UserRound,
  Zap,
} from 'lucide-react';
import { type ReactNode, useDeferredValue } from 'react';
import { mainPages } from './main-pages.ts';
import { operatorPages } from './operator/operator-pages.ts';
import { awaitPageAction, runPageAction } from './palette-actions.ts';
import { useMe } from './platform/app/me.ts';
import { organizationPages, useMayManage } from './platform/app/organization-pages.ts';
import type { StackRef } from './platform/app/procedure-types.ts';
import type { SectionLink } from './platform/app/section-layout.tsx';
import { signOut } from './platform/app/session.ts';
import { paletteTexts } from './platform/app/texts.tsx';
import { chooseTheme } from './platform/app/theme.ts';
import { trpc } from './platform/app/trpc.ts';
import { useSavedViews, useViewOwners, viewLink } from './platform/app/views/saved-views.ts';
import { pageActionTexts, pageTexts, sidebarTexts, themeTexts } from './platform/texts.tsx';
import { useFavorites } from './stacks/favorites.ts';

const maxStacks = 8;

type Me = ReturnType<typeof useMe>;

/** These actions can be started from everywhere. */
const remoteActions: readonly {
  readonly name: string;
  readonly to: string;
  readonly isShown: (isAdmin: boolean, me: Me) => boolean;
}[] = [
  {
    name: pageActionTexts.addMember,
    to: '/$organization/~/members',
    isShown: (isAdmin, me) => isAdmin && me?.mayAddMembers === true,
  },
  {
    name: pageActionTexts.inviteMember,
    to: '/$organization/~/members',
    isShown: (isAdmin, me) => isAdmin && me?.mayAddMembers === false,
  },
  { name: pageActionTexts.createToken, to: '/$organization/~/tokens', isShown: () => true },
  { name: pageActionTexts.freezeStacks, to: '/$organization/~/rules', isShown: (isAdmin) => isAdmin },
  { name: pageActionTexts.addWebhook, to: '/$organization/~/webhooks', isShown: (isAdmin) => isAdmin },
];

export interface Command {
  readonly id: string;
  readonly group: string;
  readonly name: string;
  readonly icon: ReactNode;
  readonly run: () => void;
}

/** The last entry, which searches for the typed text. */
export const searchId = 'search';

/** Stacks come from the server's search, everything else is found by name. `isAnswered`: the server has answered, or cannot. */
export function useCommands(
  text: string,
  organization: string | undefined,
  actions: readonly string[],
): { readonly commands: readonly Command[]; readonly isAnswered: boolean } {
  const navigate = useNavigate();
  const router = useRouter();
  const me = useMe();
  const favorites = useFavorites(me?.login);
  const owners = useViewOwners();
  const views = useSavedViews(owners).items ?? [];
  const deferred = useDeferredValue(text);
  const found = useQuery(
    trpc.stacks.list.queryOptions(
      { ...(organization === undefined ? {} : { organization }), text: deferred, limit: maxStacks },
      { enabled: deferred !== '', placeholderData: keepPreviousData },
    ),
  );
  const stackCommand =
    (group: string, icon: ReactNode) =>
    (stack: StackRef): Command => ({
      id: `${group} ${stack.organization}/${stack.project}/${stack.stack}`,
      group,
      name: `${stack.organization}/${stack.project}/${stack.stack}`,
      icon,
      run: () =>
        void navigate({
          to: '/$organization/$project/$stack',
          params: { organization: stack.organization, project: stack.project, stack: stack.stack },
        }),
    });
  const isAdmin = useMayManage(organization ?? '');
  const toPage = (group: string, icon: ReactNode, { link, name }: SectionLink): Command => ({
    id: `${group} ${name}`,
    ...{ group, name, icon },
    run: () =>
      void navigate({ ...link, ...(organization === undefined ? {} : { params: { organization } }) } as LinkProps),
  });
  const ofOrganization =
    organization === undefined
      ? []
      : [
          ...[mainPages.ci, mainPages.activity, mainPages.references].map(({ Icon, ...page }) =>
            toPage(organization, <Icon size={16} />, page),
          ),
          ...organizationPages(isAdmin).map((page) => toPage(organization, <Building2 size={16} />, page)),
        ];
  const action = (name: string, run: () => void): Command => ({
    id: `action ${name}`,
    ...{ group: paletteTexts.actions, name, icon: <Zap size={16} />, run },
  });
  const elsewhere = remoteActions.filter(
    ({ isShown, name }) => organization !== undefined && isShown(isAdmin, me) && !actions.includes(name),
  );
  const fixed: readonly Command[] = [
    ...favorites.map(stackCommand(paletteTexts.favorites, <Star size={16} />)),
    ...views.map((view) => ({
      id: `view ${view.id}`,
      ...{ group: paletteTexts.views, icon: <Bookmark size={16} /> },
      name: owners.length > 1 ? sidebarTexts.viewOf(view.name, view.organization) : view.name,
      run: () => void navigate(viewLink(view)),
    })),
    ...actions.map((name) => action(name, () => runPageAction(name))),
    ...elsewhere.map(({ name, to }) =>
      action(name, () => {
        const giveUp = awaitPageAction(name);
        void navigate({ to, params: { organization } } as LinkProps).then(() => {
          const end = router.subscribe('onBeforeNavigate', ({ pathChanged }) => {
            if (!pathChanged) return;
            giveUp();
            end();
          });
        });
      }),
    ),
    ...ofOrganization,
    ...(me?.isOperator ? operatorPages.map((page) => toPage(pageTexts.operations, <Activity size={16} />, page)) : []),
    ...generalCommands(me, navigate),
  ];
  if (text === '') return { commands: fixed, isAnswered: true };
  const words = text.toLowerCase().split(/\s+/);
  const matches = ({ name }: Command): boolean => words.every((word) => name.toLowerCase().includes(word));
  const stacks = (found.data?.items ?? []).map(stackCommand(paletteTexts.stacks, <Layers size={16} />));
  const isCurrent = deferred === text && !found.isPlaceholderData;
  const search: Command = {
    id: searchId,
    group: paletteTexts.resources,
    name: paletteTexts.searchResources(text),
    icon: <Search size={16} />,
    run: () => void navigate({ to: '/~/search', search: { q: text } }),
  };
  return {
    // The results of the previous text may not match the new one.
    commands: [...(isCurrent ? stacks : stacks.filter(matches)), ...fixed.filter(matches), search],
    isAnswered: found.failureCount > 0 || (isCurrent && !found.isPending),
  };
}

/** Entries that are the same everywhere. */
function generalCommands(me: Me, navigate: ReturnType<typeof useNavigate>): readonly Command[] {
  return [
    {
      id: 'attention',
      group: paletteTexts.pages,
      name: paletteTexts.whatNeedsAttention,
      icon: <Inbox size={16} />,
      run: () => void navigate({ to: '/~/attention' }),
    },
    {
      id: 'stacks',
      group: paletteTexts.pages,
      name: paletteTexts.stacksOfAll,
      icon: <Layers size={16} />,
      run: () => void navigate({ to: '/' }),
    },
    ...(me?.organizations ?? []).map(({ name }) => ({
      id: `organization ${name}`,
      group: paletteTexts.pages,
      name: paletteTexts.stacksOf(name),
      icon: <Building2 size={16} />,
      run: () => void navigate({ to: '/$organization', params: { organization: name } }),
    })),
    {
      id: 'account',
      group: paletteTexts.pages,
      name: sidebarTexts.yourAccount,
      icon: <UserRound size={16} />,
      run: () => location.assign('/account'),
    },
    {
      id: 'about',
      group: paletteTexts.pages,
      name: sidebarTexts.about,
      icon: <Info size={16} />,
      run: () => void navigate({ to: '/~/about' }),
    },
    {
      id: 'light',
      group: themeTexts.theme,
      name: themeTexts.lightTheme,
      icon: <Sun size={16} />,
      run: () => chooseTheme('light'),
    },
    {
      id: 'dark',
      group: themeTexts.theme,
      name: themeTexts.darkTheme,
      icon: <Moon size={16} />,
      run: () => chooseTheme('dark'),
    },
    {
      id: 'system',
      group: themeTexts.theme,
      name: themeTexts.systemTheme,
      icon: <Monitor size={16} />,
      run: () => chooseTheme('system'),
    },
    {
      id: 'sign-out',
      group: paletteTexts.session,
      name: sidebarTexts.signOut,
      icon: <LogOut size={16} />,
      run: signOut,
    },
  ];
}
