import {
  cloneElement,
  lazy,
  type ReactElement,
  type ReactNode,
  type RefObject,
  Suspense,
  useRef,
  useState,
} from 'react';

// The popup is a large part of a page's code, and is only needed once the user opens a menu.
const load = () => import('./menu-popup.tsx');
const MenuPopup = lazy(() => load().then((loaded) => ({ default: loaded.MenuPopup })));

export const MenuItem = lazy(() => load().then((loaded) => ({ default: loaded.MenuItem })));
export const MenuSeparator = lazy(() => load().then((loaded) => ({ default: loaded.MenuSeparator })));

interface TriggerProps {
  readonly ref?: RefObject<HTMLButtonElement | null>;
  readonly onClick?: () => void;
  readonly onPointerEnter?: () => void;
  readonly onFocus?: () => void;
  readonly 'aria-haspopup'?: 'menu';
  readonly 'aria-expanded'?: boolean;
}

/** A button that opens a list of actions. `trigger`: the button, such as `<Button>`. */
export function Menu({
  align = 'start',
  children,
  trigger,
}: {
  readonly trigger: ReactElement<TriggerProps>;
  readonly children: ReactNode;
  readonly align?: 'start' | 'end';
}) {
  const [isOpen, setIsOpen] = useState(false);
  const [isWanted, setIsWanted] = useState(false);
  const anchor = useRef<HTMLButtonElement>(null);
  const want = (): void => setIsWanted(true);
  const button = cloneElement(trigger, {
    ref: anchor,
    'aria-haspopup': 'menu',
    'aria-expanded': isOpen,
    onPointerEnter: want,
    onFocus: want,
    onClick: () => {
      want();
      setIsOpen(true);
    },
  });
  return (
    <>
      {button}
      {isWanted ? (
        <Suspense>
          <MenuPopup anchor={anchor} align={align} isOpen={isOpen} onChange={setIsOpen}>
            {children}
          </MenuPopup>
        </Suspense>
      ) : null}
    </>
  );
}
