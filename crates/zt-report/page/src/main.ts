// The page of `zt report`: draws the data that stands beside it, and asks no one for more.

import { ofDocument } from "./source";
import { draw } from "./view";

draw(document.querySelector("main")!, ofDocument(document.getElementById("data")!.textContent!));
