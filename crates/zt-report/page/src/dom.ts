// Elements. Text from files becomes text nodes, never markup.

type Child = Node | string | false | undefined;
type Attributes = Record<string, string | number | boolean | undefined | ((event: never) => void)>;

function set(element: Element, attributes: Attributes, children: Child[]) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value as EventListener);
    else if (value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : `${value}`);
  }
  element.append(...children.filter((child) => child !== undefined && child !== false));
}

/** An element of HTML. A function among the attributes listens to the event of that name. */
export function h<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  set(element, attributes, children);
  return element;
}

/** An element of SVG. */
export function s<Tag extends keyof SVGElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[Tag] {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  set(element, attributes, children);
  return element;
}
